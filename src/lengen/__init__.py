"""Length generalization of transformers: train on short sequences, work on long ones, and know why."""

__version__ = "0.1.0"
