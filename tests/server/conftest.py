"""What tests of the server share: a browser, started once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from browser import Browser, chromium


@pytest.fixture(scope="session")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def browser(window: Browser) -> Browser:
    """A window as wide as a desk's."""
    window.size(1360, 900)
    return window
