# make serve   install into .venv, and serve the agents that run on this machine
# make demo    the same with a made agent that talks
# make test    everything that CI runs: lint, types, layers, tests with the real clients
# make screens draw the pictures of docs/screens anew (with pngquant, fonts-inter and fonts-jetbrains-mono)
# make bench   measure everything beside its peers, and write bench/RESULTS.md
# make soak    ten minutes of agents and clients, every byte checked; SECONDS=60 for one

PYTHON ?= python3
SECONDS ?= 600
BIN := .venv/bin

.PHONY: serve demo test lint unit clients screens bench soak clean

serve: .venv/serve
	$(BIN)/agents9 serve

demo: .venv/serve
	$(BIN)/python demo/talk.py

test: lint clients unit

unit: .venv/dev
	$(BIN)/coverage run -m pytest
	$(BIN)/coverage report --skip-covered --fail-under=90

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

clients:
	tests/e2e/install-clients

screens: .venv/dev
	AGENTS9_SCREENS=docs/screens $(BIN)/pytest -q tests/e2e/page/test_access.py

bench: .venv/dev
	$(BIN)/python -m bench

soak: .venv/dev
	$(BIN)/python -m tests.soak $(SECONDS)

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/serve: .venv/bin/python pyproject.toml
	$(BIN)/pip install --quiet --editable .
	touch $@

.venv/dev: .venv/bin/python pyproject.toml
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $@ .venv/serve

clean:
	rm -rf .venv build dist *.egg-info .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache
