"""Measuring: accuracy by length (length_curve) and intervals over examples or over training runs (intervals)."""
