# One command a wish; `make help` lists them. CI (.ci/run) runs the same ones.
PY := .venv/bin/python
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# One interpreter for every cargo call that sees PyO3, so that none of them rebuilds it for another.
export PYO3_PYTHON := $(CURDIR)/.venv/bin/python

NEXTEST := $(shell command -v cargo-nextest)
RUST_TEST := $(if $(NEXTEST),cargo nextest run --no-tests=pass,cargo test --no-fail-fast)

.PHONY: help setup build demo test test-rust test-python test-sb3 test-ray test-puffer ci bench benchmark soak soak-env sequences mutants lint format game game-check clean

help: ## List the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

# The stamp is written last: an interrupted installation starts over.
.venv/.stamp: requirements.lock
	@python3 -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "make setup needs Python 3.10 or newer with venv (Debian: apt-get install python3-venv)" >&2; exit 1; }
	@command -v cargo >/dev/null || \
	  { echo "make setup needs Rust 1.85 or newer with cargo on the PATH (https://rustup.rs)" >&2; exit 1; }
	@echo "installing the Python tools into .venv (some minutes the first time)"
	python3 -m venv .venv
	$(PY) -m pip install -q -r requirements.lock
	touch $@

setup: .venv/.stamp build ## Create .venv with every tool and build the native module into it

build: .venv/.stamp ## Build the native module of the working tree
	@echo "building the native module (minutes the first time, seconds after that)"
	@$(PY) -m maturin develop --release -q >/dev/null
	@$(PY) -m compileall -q python/cartlab # for who has PYTHONDONTWRITEBYTECODE set: `next` is to answer at once

demo: setup ## Measure HEAD~1 against HEAD and print the verdict and where its ledger is
	@scripts/demo.sh

test: test-rust test-python ## Run every test, Rust and Python

test-rust: .venv/.stamp
	$(RUST_TEST)
	ROLLCART_SWITCHED_OFF=jit $(RUST_TEST) --test conformance

# Files side by side, the tests of one file in order. Many wait for programs that they start.
test-python: setup
	$(PY) -m pytest tests/python -n $(or $(WORKERS),2) --dist loadfile

# Each library with its own environment: they are large and want different versions of the same things.
.venv-sb3/.stamp .venv-ray/.stamp .venv-puffer/.stamp: .venv-%/.stamp: pyproject.toml
	python3 -m venv .venv-$*
	.venv-$*/bin/python -m pip install -q -e '.[$*,test]'
	touch $@

test-sb3: build .venv-sb3/.stamp ## The adapter against the real Stable-Baselines3 (opt-in: installs torch)
	.venv-sb3/bin/python -m pytest tests/adapters/test_sb3.py

test-ray: build .venv-ray/.stamp ## The adapters against the real RLlib and Ray (opt-in: installs torch)
	.venv-ray/bin/python -m pytest tests/adapters/test_ray.py

test-puffer: build .venv-puffer/.stamp ## The adapter against the real PufferLib (opt-in: its build fetches sources)
	.venv-puffer/bin/python -m pytest tests/adapters/test_puffer.py

lint: .venv/.stamp ## Formatting, clippy, ruff, types, the import rules; warnings are errors
	cargo fmt --check
	cargo clippy --all-targets --all-features --quiet -- -D warnings
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	$(PY) -m mypy python
	$(PY) -m pytest tests/python/test_layers.py

format: .venv/.stamp ## Rewrite the sources as the formatters want them
	cargo fmt
	$(PY) -m ruff check --fix
	$(PY) -m ruff format

# In the order of cheapness.
ci: setup ## What CI runs: lint, the game's bytes, and exactly what `make test` runs
	@$(MAKE) --no-print-directory lint game-check
	@$(MAKE) --no-print-directory test

bench: setup ## Micro-benchmarks (pytest-benchmark), then rollcart's goals in numbers beside what is reached
	$(PY) -m pytest tests/bench --benchmark-only --benchmark-columns=min,median,iqr,rounds
	$(PY) -m rollcart.bench.goals

soak: .venv/.stamp ## Translated code against the interpreter for hours: games, test ROMs, random programs
	ROLLCART_SOAK_FRAMES=50000 cargo test --release --test lockstep -- --nocapture
	ROLLCART_FUZZ_CASES=100000 cargo test --release --test jit_fuzz -- --nocapture

soak-env: setup ## 20 million steps over 64 lanes, twice: memory flat, equal sums (STEPS=N for fewer)
	$(PY) -m rollcart.bench.soak $(if $(STEPS),--steps $(STEPS))

sequences: setup ## 10,000 random sequences of calls against the slow model (SEQUENCES=N for fewer)
	ROLLCART_SEQUENCES=$(or $(SEQUENCES),10000) $(PY) -m pytest tests/python/rollcart/test_vec_sequences.py

mutants: setup ## Remove twenty rules at random; each must turn a test red (SEED=N repeats; ONLY=src/vec_env COUNT=5)
	$(PY) tests/mutants/run.py $(if $(SEED),--seed $(SEED)) $(if $(COUNT),--count $(COUNT)) $(addprefix --only ,$(ONLY))

benchmark: setup ## Environment steps per second on the canonical workload (learning, not evidence)
	$(PY) scripts/benchmark_sps.py

game: ## Rebuild the bundled game's ROM from games/cart_runner (needs cc65)
	@python3 games/cart_runner/build.py

game-check: ## Rebuild it elsewhere and compare with the committed ROM byte for byte
	@python3 games/cart_runner/build.py --check

clean: ## Remove everything that was built or installed here
	rm -rf target dist .venv .venv-* .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks
	find python scripts tests -name __pycache__ -prune -exec rm -rf {} +
