"""The files for containers: what they name is there. No image is built."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from toolgram.cli.app import app
from toolgram.server.limits import Admission
from toolgram.server.metrics import Metrics
from toolgram.server.request_log import Record

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
SCRAPED: dict[str, Any] = yaml.safe_load((ROOT / "deploy/prometheus.yaml").read_text())
DASHBOARD: dict[str, Any] = json.loads((ROOT / "deploy/dashboard.json").read_text())


def serve_options() -> tuple[set[str], set[str]]:
    """The options of `toolgram serve`, and its variables."""
    from typer.main import get_command

    command = get_command(app).commands["serve"]  # type: ignore[attr-defined] - a group has commands
    options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    return options, {str(parameter.envvar) for parameter in command.params}


OPTIONS, VARIABLES = serve_options()


def test_the_image_runs_without_rights_and_tells_its_health() -> None:
    last = DOCKERFILE.rpartition("FROM ")[2]
    assert re.search(r"^USER 10001$", last, re.MULTILINE)
    assert "--uid 10001" in last
    assert last.index("USER ") < last.index("ENTRYPOINT")
    (check,) = re.findall(r"HEALTHCHECK [^\n]*\\\n\s+CMD (\[.*\])", last)
    assert "/health" in json.loads(check)[2]
    compile(json.loads(check)[2], "the health check", "exec")
    assert re.search(r"EXPOSE 8000", last)
    assert re.search(r"TOOLGRAM_PORT=8000", last)


def test_what_is_copied_is_there_and_goes_into_the_build() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    for files in re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE):
        for name in files.split():
            assert (ROOT / name).exists(), name
            assert f"!{name}" in ignored, name


@pytest.mark.parametrize(
    "text", [DOCKERFILE, (ROOT / "compose.yaml").read_text(), (ROOT / "docs/containers.md").read_text()]
)
def test_each_variable_is_one_of_serve(text: str) -> None:
    named = set(re.findall(r"TOOLGRAM_[A-Z_]+", text))
    assert named
    assert named <= VARIABLES, named - VARIABLES


def test_each_option_is_one_of_serve() -> None:
    command, *words = COMPOSE["services"]["toolgram"]["command"]
    assert command == "serve"
    assert {word for word in words if word.startswith("-")} <= OPTIONS


def test_the_services_find_one_another() -> None:
    services = COMPOSE["services"]
    exposed = {"toolgram": "8000", **{name: services[name]["expose"][0] for name in ("vllm-1", "vllm-2")}}
    for host, port in re.findall(r"http://([\w-]+):(\d+)", " ".join(services["toolgram"]["command"])):
        assert exposed[host] == port
    targets = [
        target for job in SCRAPED["scrape_configs"] for each in job["static_configs"] for target in each["targets"]
    ]
    assert {*targets} == {f"{host}:{port}" for host, port in exposed.items()}
    assert services["toolgram"]["ports"] == ["127.0.0.1:9000:8000"]
    assert all(name in COMPOSE["volumes"] for service in services.values() for name in named_volumes(service))


def named_volumes(service: dict[str, Any]) -> list[str]:
    names = [volume.partition(":")[0] for volume in service.get("volumes", ())]
    for name in names:
        assert not name.startswith("./") or (ROOT / name).exists(), name
    return [name for name in names if not name.startswith("./")]


@pytest.mark.parametrize("name", ["toolgram", "prometheus"])
def test_what_is_published_has_no_rights(name: str) -> None:
    service = COMPOSE["services"][name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])


def test_each_metric_of_the_dashboard_is_one_that_the_server_gives() -> None:
    metrics = Metrics()
    Admission(1, 1, 1.0, metrics)
    record = Record("r")
    record.spoke()
    metrics.count("/v1/chat/completions", 200, 0.1, record)
    given = set(re.findall(r"^(toolgram_\w+)", metrics.text().decode(), re.MULTILINE))
    asked = {
        name
        for panel in DASHBOARD["panels"]
        for target in panel["targets"]
        for name in re.findall(r"toolgram_\w+", target["expr"])
    }
    assert len(asked) >= 6
    assert asked <= given, asked - given
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
