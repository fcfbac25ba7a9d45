"""What pages of other sites may do: nothing, by a name of their own for this machine neither."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from live_server import serving
from toolgram.engines.replay import Replay
from toolgram.server.settings import Settings

CHAT = "/v1/chat/completions"
HI: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi."}], "max_tokens": 4}
LOCAL = Settings(hosts=())
NAMED = Settings(hosts=("nas.local", "*.example.com"))


@pytest.mark.parametrize(
    ("settings", "host", "status"),
    [
        *((LOCAL, host, 200) for host in ("127.0.0.1:8000", "127.0.0.1", "localhost:8000", "LocalHost", "localhost.")),
        *((LOCAL, host, 200) for host in ("[::1]:8000", "[::1]", "192.168.0.7:80", "a.localhost:1")),
        *((LOCAL, host, 403) for host in ("evil.example:8000", "evil.example", "127.0.0.1.evil.example", "", "::x:1")),
        *((LOCAL, host, 403) for host in ("localhost.evil.example", "notlocalhost", "nas.local", "*", ":8000")),
        *((NAMED, host, 200) for host in ("nas.local:8000", "NAS.local", "a.example.com", "localhost:1", "10.0.0.1")),
        *((NAMED, host, 403) for host in ("example.com", "evilexample.com", "nas.local.evil", "a.example.com.evil")),
        (Settings(hosts=("*",)), "evil.example", 200),
    ],
)
def test_it_answers_to_its_names_alone(settings: Settings, host: str, status: int) -> None:
    with serving(Replay("Hello."), settings) as address:
        for path in ("/health", "/", "/v1/models"):
            assert httpx2.get(address + path, headers={"host": host}).status_code == status
        answer = httpx2.post(address + CHAT, json=HI, headers={"host": host})
        assert answer.status_code == status
        if status == 403:
            assert answer.json()["error"]["code"] == "host_not_allowed"
            assert "--allowed-hosts" in answer.json()["error"]["message"]
            anthropic = httpx2.post(address + "/v1/messages", json=HI, headers={"host": host}).json()
            assert anthropic["error"]["type"] == "permission_error"


def test_a_page_of_this_machine_that_asks_whether_it_may_is_told_which_flag_allows_it() -> None:
    page = "http://localhost:3000"
    asks = {"origin": page, "access-control-request-method": "POST", "access-control-request-headers": "content-type"}
    with serving(Replay("Hello.")) as address:
        answer = httpx2.options(address + CHAT, headers=asks)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "origin_not_allowed")
        assert answer.json()["error"]["message"].endswith(f"with `toolgram serve --allowed-origins {page}`")
        assert "access-control-allow-origin" not in answer.headers
    with serving(Replay("Hello."), Settings(origins=(page,))) as address:
        allowed = httpx2.options(address + CHAT, headers=asks)
        assert (allowed.status_code, allowed.headers["access-control-allow-origin"]) == (200, page)


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_bodies_from_pages_of_other_sites_are_not_run(site: str) -> None:
    page = {"sec-fetch-site": site, "origin": "https://a.example", "content-type": "text/plain"}
    with serving(Replay("Hello.", "Hello.")) as address:
        answer = httpx2.post(address + CHAT, json=HI, headers=page)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "origin_not_allowed")
        without = {"sec-fetch-site": site}
        assert httpx2.post(address + CHAT, json=HI, headers=without).status_code == 403
        assert httpx2.get(address + "/", headers=page).status_code == 200  # a link may lead here
        for own in ("same-origin", "none"):
            assert httpx2.post(address + CHAT, json=HI, headers={**page, "sec-fetch-site": own}).status_code == 200
    for origins in (("https://a.example",), ("*",)):
        with serving(Replay("Hello."), Settings(origins=origins)) as address:
            assert httpx2.post(address + CHAT, json=HI, headers=page).status_code == 200
    with serving(Replay("Hello."), Settings(origins=("https://b.example",))) as address:
        assert httpx2.post(address + CHAT, json=HI, headers=page).status_code == 403
