"""Styles from and to transformers' `response_template`."""
