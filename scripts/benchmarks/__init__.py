"""What benchmark.py measures, one module per measurement."""
