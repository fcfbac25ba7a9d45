"""Three tools as plain typed functions: `toolgram ask "…" --tools examples/tools.py`.

`toolgram agent` runs them, and takes the type for an answer: `--answer examples/tools.py:Forecast`.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

Currency = Literal["EUR", "USD", "GBP", "JPY"]


@dataclass
class Forecast:
    """What the weather will be."""

    city: str
    sunny: bool
    days: int


def get_weather(
    city: Annotated[str, "The name of the city"],
    days: Annotated[int, Field(ge=1, le=14, description="How many days ahead")],
) -> str:
    """Get the weather forecast for a city."""
    return f"{city}: sunny for {days} days"


def convert_currency(amount: Annotated[int, Field(ge=1, le=1_000_000)], source: Currency, target: Currency) -> str:
    """Convert an amount of money from one currency to another."""
    return f"{amount} {source} in {target}"


def send_email(to: str, subject: str, body: str) -> str:
    """Send an email to someone."""
    return f"sent {subject!r} to {to}: {len(body)} characters"
