"""Scores of translations, and the evaluation of a translator on sentence pairs."""
