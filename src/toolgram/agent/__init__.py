"""Tools that run: Python functions as tools of a model."""
