"""The training loop with its data and callbacks; the only package that imports lightning."""
