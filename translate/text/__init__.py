"""Files in, integers out: read parallel text, check it and split it into pieces."""
