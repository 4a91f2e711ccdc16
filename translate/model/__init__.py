"""Integers in, logits out: attention, blocks and the transformer. Knows no text and no files.

Read in this order: masks, attention, layers, transformer; dropout stands on its own.
"""
