"""The routes, one file an API."""
