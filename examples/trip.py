"""A trip as a type (`toolgram ask "…" --schema examples/trip.py:Trip`), and a function that books it (`--tools`)."""

from datetime import date
from typing import Annotated, Literal

from pydantic import BaseModel, Field

Nights = Annotated[int, Field(ge=1, le=30)]


class Trip(BaseModel):
    """Where somebody wants to go."""

    city: str
    leaves: date
    nights: Nights = 1
    by: Literal["train", "ship"] = "train"


def book(trip: Trip, travellers: Annotated[int, Field(ge=1)] = 1) -> str:
    """Book a trip.

    Args:
        trip: What to book
        travellers: How many people go
    """
    return f"{travellers} by {trip.by} to {trip.city}, {trip.nights} nights from {trip.leaves:%d %B %Y}"
