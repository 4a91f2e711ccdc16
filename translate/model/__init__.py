"""Integers in, logits out: attention, blocks and the transformer. Knows no text and no files."""
