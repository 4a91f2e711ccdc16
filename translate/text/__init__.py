"""Room 1, text: files in, integers out. Only `batching` knows torch."""
