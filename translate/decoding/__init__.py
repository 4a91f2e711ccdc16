"""Decoding: search (ids in, ids out), checkpoints, and the translator (text in, text out)."""
