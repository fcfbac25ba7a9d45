"""Twenty tasks for agents: a goal, tools that answer it, the type of the answer, and what it must be.

Tools are Python functions and the operations of a small shop, which has an OpenAPI document; peers, which read none,
are given functions that ask it. It needs pydantic and the standard library alone, since each peer has Python packages
of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

from pydantic import BaseModel

INSTRUCTIONS = "Use the tools to find out what you are asked for, then answer."
STEPS, TOKENS = 6, 256  # of a run; of a step

_PRICES = {"tea": 2.5, "cake": 4.0, "soup": 6.5, "bread": 1.8}
_DEGREES = {"Oslo": 7, "Rome": 21, "Cairo": 33, "Lima": 18}
_PEOPLE = {"Oslo": 720_000, "Rome": 2_750_000, "Cairo": 10_200_000, "Lima": 10_100_000}
_PHONES = {"Ada": "555-0101", "Grace": "555-0199", "Alan": "555-0142"}
ORDERS = {
    "17": {"id": "17", "customer": "Ada", "item": "tea", "count": 3, "status": "shipped"},
    "42": {"id": "42", "customer": "Grace", "item": "cake", "count": 1, "status": "waiting"},
}
CUSTOMERS = {"Ada": {"name": "Ada", "city": "Oslo"}, "Grace": {"name": "Grace", "city": "Rome"}}


def price(item: str) -> float:
    """The price of an item, in euros."""
    return _PRICES[item.lower()]


def temperature(city: str) -> int:
    """The temperature in a city now, in degrees Celsius."""
    return _DEGREES[city]


def population(city: str) -> int:
    """How many people live in a city."""
    return _PEOPLE[city]


def phone_number(name: str) -> str:
    """The phone number of a person."""
    return _PHONES[name]


def add(a: float, b: float) -> float:
    """The sum of two numbers."""
    return a + b


def multiply(a: float, b: float) -> float:
    """The product of two numbers."""
    return a * b


def count_letters(word: str) -> int:
    """How many letters a word has."""
    return len(word)


def reverse(text: str) -> str:
    """A text from its end to its beginning."""
    return text[::-1]


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    each.__name__: each
    for each in (price, temperature, population, phone_number, add, multiply, count_letters, reverse)
}


def operations(shop: str) -> Mapping[str, Callable[..., Any]]:
    """The operations of the shop at an address, as functions."""

    def get_order(id: str) -> str:  # noqa: A002 - as the shop has it
        """An order: what, how many, for whom, and how far it is."""
        return _said(f"{shop}/orders/{quote(id, safe='')}")

    def get_customer(name: str) -> str:
        """A customer, and the city of the customer."""
        return _said(f"{shop}/customers/{quote(name, safe='')}")

    def find_products(max_price: float) -> str:
        """The names of products that cost no more than a price."""
        return _said(f"{shop}/products?{urlencode({'max_price': max_price})}")

    def create_order(item: str, count: int) -> str:
        """Order so many of an item; gives the number of the order."""
        return _said(f"{shop}/orders", {"item": item, "count": count})

    return {each.__name__: each for each in (get_order, get_customer, find_products, create_order)}


def _said(url: str, body: Any = None) -> str:
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url, data, {"content-type": "application/json"}), timeout=30) as answer:  # noqa: S310 - ours
        return answer.read().decode()


def products(max_price: float) -> list[str]:
    """What the shop answers."""
    return [item for item, cost in _PRICES.items() if cost <= max_price]


class Number(BaseModel):
    """A number."""

    value: float


class Words(BaseModel):
    """A text of a few words."""

    text: str


class Order(BaseModel):
    """An order."""

    item: str
    count: int


class City(BaseModel):
    """A city, and its temperature."""

    city: str
    degrees: int


class Names(BaseModel):
    """Some names."""

    names: list[str]


@dataclass(frozen=True)
class Task:
    """What is asked, with which tools, the type of the answer, and its one right value."""

    goal: str
    tools: tuple[str, ...]
    answer: type[BaseModel]
    expected: Mapping[str, Any]

    def is_solved(self, answer: Mapping[str, Any] | None) -> bool:
        """Whether the answer is the right one; case and order aside."""
        if answer is None:
            return False
        given = self.answer.model_validate(answer).model_dump()
        return all(_plain(given[key]) == _plain(value) for key, value in self.expected.items())


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return value.strip(" .").casefold()
    if isinstance(value, list):
        return sorted(map(str.casefold, value))
    return round(value, 6)


TASKS = (
    Task("What does tea cost?", ("price",), Number, {"value": 2.5}),
    Task("What is the temperature in Oslo?", ("temperature",), Number, {"value": 7}),
    Task("How many people live in Lima?", ("population", "temperature"), Number, {"value": 10_100_000}),
    Task("What is Grace's phone number?", ("phone_number",), Words, {"text": "555-0199"}),
    Task("What is 1234.5 plus 876.25?", ("add", "multiply"), Number, {"value": 2110.75}),
    Task("What is 37 times 89?", ("add", "multiply"), Number, {"value": 3293}),
    Task("How many letters does the word 'nevertheless' have?", ("count_letters",), Number, {"value": 12}),
    Task("Reverse the text 'stressed'.", ("reverse",), Words, {"text": "desserts"}),
    Task("Tell me the city Cairo and its temperature.", ("temperature",), City, {"city": "Cairo", "degrees": 33}),
    Task("What does soup cost?", ("price", "temperature", "phone_number"), Number, {"value": 6.5}),
    Task("Which item was ordered in order 17, and how many?", ("get_order",), Order, {"item": "tea", "count": 3}),
    Task("What is the status of order 42?", ("get_order",), Words, {"text": "waiting"}),
    Task("In which city does the customer Ada live?", ("get_customer",), Words, {"text": "Oslo"}),
    Task("Which products cost at most 3 euros?", ("find_products",), Names, {"names": ["tea", "bread"]}),
    Task("Order 5 cakes. What is the number of the order?", ("create_order",), Number, {"value": 4711}),
    Task("For which customer is order 42?", ("get_order", "get_customer"), Words, {"text": "Grace"}),
    Task("What do 3 cakes cost? Look up the price, then multiply.", ("price", "multiply"), Number, {"value": 12}),
    Task("What do a tea and a soup cost together?", ("price", "add"), Number, {"value": 9}),
    Task("Which city does the customer Grace live in, and what is the temperature there?",
         ("get_customer", "temperature"), City, {"city": "Rome", "degrees": 21}),
    Task("In which city does the customer of order 17 live?", ("get_order", "get_customer"), Words, {"text": "Oslo"}),
)  # fmt: skip
