"""Everything that needs lightning: the training loop, its data and its callbacks."""
