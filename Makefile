PYTHON ?= python3
VENV   ?= .venv
# The array tests also use torch; this release has a CPU-only build, which is sufficient.
TORCH  ?= torch==2.13.0
BIN    := $(VENV)/bin

.PHONY: demo test test-minimum test-dist lint docs bench bench-law bench-tuning bench-real bench-scale bench-dynamics bench-losses sweep clean

demo: $(VENV)/.demo
	$(BIN)/wienerkernel demo --out out/demo --force
	$(BIN)/wienerkernel paper --out out

test: $(VENV)/.dev
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

# The oldest versions of the dependencies that pyproject.toml admits.
test-minimum:
	$(PYTHON) -m venv --clear .venv-minimum
	$(PYTHON) .ci/minimum.py > .venv-minimum/constraints.txt
	.venv-minimum/bin/python -m pip install --quiet -c .venv-minimum/constraints.txt $(TORCH) -e ".[test]"
	SCIPY_ARRAY_API=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 .venv-minimum/bin/python -m pytest -n 2 -W ignore::DeprecationWarning -W ignore::pytest.PytestDeprecationWarning

# The wheel, made from the source distribution, runs from an environment of its own, away from the repository.
test-dist: $(VENV)/.dev
	rm -rf dist && $(BIN)/python -m build --quiet --outdir dist .
	$(PYTHON) -m venv --clear .venv-dist
	.venv-dist/bin/python -m pip install --quiet "$$(ls dist/*.whl)[cli]"
	cd .venv-dist && bin/wienerkernel demo --out demo

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell
	$(BIN)/repo-review .

docs: $(VENV)/.docs
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/regression.py

bench-law: $(VENV)/.bench
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/law.py

bench-tuning: $(VENV)/.demo
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/tuning.py --jobs 2

bench-scale: $(VENV)/.bench
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/scale.py

bench-dynamics: $(VENV)/.bench
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/dynamics.py

bench-losses: $(VENV)/.bench
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/losses.py --sizes 20 100 --jobs 2

bench-real: $(VENV)/.bench
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/real_data.py

sweep: $(VENV)/.dev
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/sweep.py --jobs 2

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet -e ".[cli]"
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet $(TORCH)
	$(BIN)/python -m pip install --quiet -e ".[dev]"
	@touch $@ $(VENV)/.demo

$(VENV)/.docs: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet -e ".[docs]"
	@touch $@

$(VENV)/.bench: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet -e ".[bench]"
	@touch $@

clean:
	rm -rf $(VENV) .venv-minimum .venv-dist out build dist docs/_build docs/auto_examples docs/api .pytest_cache .mypy_cache .ruff_cache
