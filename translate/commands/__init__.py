"""Everything that talks to a terminal: one file per command, and what commands share."""
