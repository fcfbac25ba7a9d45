"""The embedded engine: what the grammar forces.

Run: python benchmarks/engine.py [--tasks N]
"""

from __future__ import annotations

import argparse

import toolgram
from _engine_census import census
from _tool_tasks import tasks
from toolgram.engines.llama_cpp import LlamaCpp
from toolgram.engines.models import default_model


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=len(tasks()), help="how many tasks")
    options = parser.parse_args()
    model = default_model()
    template = toolgram.ChatTemplate.from_gguf(model)
    engine = LlamaCpp(model)
    census(engine, template, tasks()[: options.tasks])
    engine.close()


if __name__ == "__main__":
    main()
