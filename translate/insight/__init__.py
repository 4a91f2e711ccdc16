"""Inspect a model: attention, its stages, decoding steps, measurements, alarms, pictures."""
