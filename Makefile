# Needs Python 3.11+ and make; everything else is installed into .venv from the package registry.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN ?= demo-run
# What is used is compiled when it is used; compiling all that is installed takes as long as the rest.
# It must be kept, then: where it may not be (as some containers have it), every process compiles all anew.
unexport PYTHONDONTWRITEBYTECODE
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt

.PHONY: demo test check bench clean
.DEFAULT_GOAL := help

help:
	@echo "make demo   install, then run, score and report the starter suite"
	@echo "make test   install, then run the tests"
	@echo "make check  format, lint, types, import layers, file lengths"
	@echo "make bench  benchmarks against named peers"

$(VENV)/core: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "ConvergeBench needs Python 3.11 or newer; set PYTHON=/path/to/python3.11" >&2; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) -e .
	touch $@

$(VENV)/dev: $(VENV)/core
	$(INSTALL) -e '.[dev]'
	touch $@

demo: $(VENV)/core
	$(BIN)/convergebench demo $(RUN)

test: $(VENV)/dev
	$(BIN)/python -m pytest -n auto -m "not slow and not browser and not weights"

check: $(VENV)/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/dev
	$(BIN)/python benchmarks/ssim.py
	$(BIN)/python benchmarks/runner.py
	$(BIN)/python -m benchmarks.importing
	$(BIN)/python -m benchmarks.intervals
	$(BIN)/python -m benchmarks.report
	$(BIN)/python -m benchmarks.scale --frames 1000 5000 --repeats 1
	$(BIN)/python -m benchmarks.engines --repeats 3

clean:
	rm -rf $(VENV) demo-run
