# One command a wish; `make help` lists them. CI runs the same ones.
PY := .venv/bin/python
SHELL := /bin/bash
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help setup build

help: ## List the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

# The stamp is written last: an interrupted installation starts over.
.venv/.stamp: requirements.lock pyproject.toml
	python3 -m venv .venv
	$(PY) -m pip install -q -r requirements.lock
	touch $@

setup: .venv/.stamp build ## Create .venv with every tool and build the native module into it

build: .venv/.stamp ## Build the native module of the working tree
	$(PY) -m maturin develop --release -q
