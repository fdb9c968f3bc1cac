# Everything runs from a virtual environment in the checkout; Python 3.11+ and make are all that is needed.
# Another Python beside it: make test PYTHON=python3.13 VENV=.venv-3.13
PYTHON ?= python3
VENV ?= .venv
RUN := $(VENV)/bin
STAMP := $(VENV)/.installed
COMPILE := $(RUN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
  --no-emit-find-links --no-header --override requirements/overrides.in
BENCHMARKS := $(filter-out __init__ report,$(basename $(notdir $(wildcard benchmarks/*.py))))

# Trust what the machine trusts, as pip does: company proxies have certificates of their own.
export UV_SYSTEM_CERTS := true

.PHONY: help setup demo test suite check format torture bench docs lock clean

help:  ## what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

setup: $(STAMP)  ## make .venv with everything in it

$(STAMP): requirements/bootstrap.lock requirements/dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Omnigraph needs Python 3.11 or newer; this is " + sys.version)'
	@test -x $(RUN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Setting up $(VENV) ..."
	@$(RUN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bootstrap.lock
	@$(RUN)/uv pip sync --quiet --python $(RUN)/python --require-hashes requirements/bootstrap.lock requirements/dev.lock
	@$(RUN)/uv pip install --quiet --python $(RUN)/python --no-deps --no-build-isolation -e .
	@touch $@

demo: setup  ## a tour of the store on a graph of its own, in a temporary folder
	@$(RUN)/python -m omnigraph.cli demo

# Where memory allows, tests keep their graphs in it: to sync costs nothing there.
TEMPORARY := $(shell [ "$$(df --output=avail /dev/shm 2>/dev/null | tail -1)" -gt 8000000 ] 2>/dev/null \
  && echo PYTEST_DEBUG_TEMPROOT=/dev/shm)

test: check suite  ## everything that must hold, in minutes

suite: setup  ## the tests alone; with SELECT='tests/unit …', some of them
	@$(TEMPORARY) $(RUN)/python -m pytest -n 2 --dist loadgroup $(SELECT)

check: setup  ## format, lint, types, contracts
	@$(RUN)/ruff format --check src tests benchmarks
	@$(RUN)/ruff check src tests benchmarks
	@$(RUN)/mypy
	@$(RUN)/lint-imports

format: setup  ## rewrite the sources in the one format
	@$(RUN)/ruff format src tests benchmarks
	@$(RUN)/ruff check --fix src tests benchmarks

torture: setup  ## the long runs: fuzzing, many processes for long, planted bugs that must turn tests red
	@$(RUN)/python -m pytest -m torture --timeout 3600

bench: setup  ## every benchmark, as ratios, beside the products they are compared with
	@$(RUN)/uv pip install --quiet --python $(RUN)/python --require-hashes -r requirements/bench.lock
	@for each in $(BENCHMARKS); do $(RUN)/python -m benchmarks.$$each || exit 1; done

docs: setup  ## regenerate the parts of the docs that come from code, and build the site into site/
	@$(RUN)/python -m docs.generate
	@NO_MKDOCS_2_WARNING=1 $(RUN)/python -m mkdocs build --quiet --strict

lock: setup  ## compile requirements/*.lock anew from pyproject.toml
	@$(COMPILE) requirements/bootstrap.in -o requirements/bootstrap.lock
	@$(COMPILE) pyproject.toml --group dev -o requirements/dev.lock
	@$(COMPILE) pyproject.toml --group bench -c requirements/dev.lock -o requirements/bench.lock

clean:  ## remove the virtual environment and caches
	rm -rf $(VENV) .venv-* .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
