"""The decoder: config, attention, cache by slot, token and position heads, conversion to and from Hugging Face."""
