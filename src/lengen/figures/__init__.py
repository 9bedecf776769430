"""Figures: rows in, matplotlib out. No torch here: a laptop can draw what a cluster measured."""
