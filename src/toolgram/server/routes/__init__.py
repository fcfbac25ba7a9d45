"""The routes, one file per API."""
