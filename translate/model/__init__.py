"""The model: integers in, logits out. Read masks, attention, layers, transformer in this order."""
