"""Looking inside: who looks at whom, the five stages, figures of health, pictures."""
