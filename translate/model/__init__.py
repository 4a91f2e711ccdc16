"""Integers in, logits out. Read in this order: masks, attention, layers, transformer."""
