"""Looking inside: heatmaps, curves and what they show."""
