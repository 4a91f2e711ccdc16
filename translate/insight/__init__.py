"""Looking inside: attention by words, and heatmaps of it."""
