"""The parts of benchmark.py. Modules named `..._worker` run in processes of their own."""
