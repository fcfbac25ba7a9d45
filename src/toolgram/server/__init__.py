"""The HTTP server: the APIs that existing clients speak, over any engine."""
