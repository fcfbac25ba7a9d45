"""Models by name, and where their files are."""
