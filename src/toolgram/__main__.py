"""`python -m toolgram`."""

from toolgram.cli.main import run

run()
