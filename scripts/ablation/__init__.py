"""The parts of `scripts/ablations.py`."""
