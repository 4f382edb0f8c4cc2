# One command for each thing people do here; continuous integration runs the same ones.
# Everything happens in $(VENV), made when missing.

export VENV ?= .venv
BIN := $(VENV)/bin
LOWEST ?= .venv-lowest

.PHONY: help demo test test-slow test-lowest coverage lint format types contracts doctest docs \
        bench digits check clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

demo:  ## fit, explain and prove on built-in data
	@scripts/demo

test:  ## the fast tests (ARGS="-k ridge -n auto" goes to pytest)
	@scripts/test $(ARGS)

test-slow:  ## the slow tests
	@scripts/test -m slow $(ARGS)

test-lowest:  ## the fast tests with the oldest supported versions
	@if [ ! -x $(LOWEST)/bin/python ]; then $${PYTHON:-python3.11} -m venv $(LOWEST); fi
	$(LOWEST)/bin/pip install --quiet --disable-pip-version-check --only-binary :all: -r requirements/lowest.txt
	$(LOWEST)/bin/pip install --quiet --disable-pip-version-check --no-deps --editable .
	$(LOWEST)/bin/pip check --disable-pip-version-check
	$(LOWEST)/bin/python -m pytest $(ARGS)

coverage:  ## lines and branches reached, with kernels run as plain Python
	@scripts/env test
	TRUELINE_PURE_PYTHON=1 $(BIN)/python -m pytest --cov --cov-report=term --cov-report=html $(ARGS)

lint:  ## style of code and docstrings
	@scripts/env lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format:  ## let ruff repair what it can
	@scripts/env lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types:  ## static types of the package
	@scripts/env lint
	$(BIN)/mypy

contracts:  ## who may import whom
	@scripts/env lint
	$(BIN)/lint-imports

doctest:  ## the examples in docstrings and in the pages of the documentation
	@scripts/env test
	$(BIN)/python -m pytest -n auto --doctest-modules --doctest-glob='*.rst' src/trueline docs/*.rst $(ARGS)

docs:  ## the documentation, warnings are errors: build/docs/index.html
	@scripts/env docs
	$(BIN)/python -m sphinx -W --keep-going -q -j auto -b html docs build/docs

bench:  ## speed against other libraries
	@scripts/env bench
	$(BIN)/python -m benchmarks $(ARGS)

digits:  ## correct digits on data with certified answers
	@scripts/env test
	$(BIN)/python -m benchmarks.digits $(ARGS)

check: lint types contracts test doctest docs  ## everything a change must pass

clean:  ## remove what was built; environments stay
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache docs/gallery docs/generated
