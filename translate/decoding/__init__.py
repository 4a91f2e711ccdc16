"""Ids in, ids out; then text in, text out: search, one model on disk, the translator."""
