PYTHON ?= python3
VENV   ?= .venv
# The array tests run with torch, too; this release has a build without CUDA, which is all they need.
TORCH  ?= torch==2.13.0
BIN    := $(VENV)/bin

.PHONY: demo test lint bench bench-law clean

demo: $(VENV)/.demo
	$(BIN)/wienerkernel paper --out out

test: $(VENV)/.dev
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/regression.py

bench-law: $(VENV)/.bench
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/law.py

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet -e ".[cli]"
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet $(TORCH)
	$(BIN)/python -m pip install --quiet -e ".[dev]"
	@touch $@ $(VENV)/.demo

$(VENV)/.bench: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet -e ".[bench]"
	@touch $@

clean:
	rm -rf $(VENV) out build dist .pytest_cache .mypy_cache .ruff_cache
