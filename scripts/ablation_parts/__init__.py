"""What `scripts/ablations.py` is made of."""
