"""The paper's experiments: presets for every arm, and the demo."""
