# The commands of a checkout. Each makes the environment in .venv that it needs.
#   make demo    install armillary with its viewer and run its main job
#   make test    install what the tests need and run the quick ones
#   make lint    ruff and pyright
#   make docs    the pages and the API reference as HTML, in site/
#   make bench   the figures, beside other libraries (large downloads)
#   make clean   remove the environment and every cache
#   make test-all       the quick tests and those marked `thorough`
#   make test-peers     comparisons with other robotics libraries (large downloads)
#   make test-versions  the quick tests with the lowest and the newest versions of all
#                       dependencies, on each Python from 3.11 that is installed
# Another interpreter: make PYTHON=/path/to/python3.12 demo
# More arguments:      make test ARGS="-k kernel"

PYTHON ?= python3.11 python3
VENV := .venv
PY := $(VENV)/bin/python
ARGS ?=
# Extras to install in one step instead of those that each command needs: .ci/run.
EXTRAS ?=
comma := ,
# Each worker has a core: threads of BLAS, which wait in loops, would take it from both.
PYTEST := OPENBLAS_NUM_THREADS=1 $(PY) -m pytest -n 2 --dist worksteal

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help demo test test-all test-peers test-versions lint docs bench clean
unexport PYTHONPATH
unexport PYTHONHOME
# Tests start many processes, which load bytecode in half the time of source.
unexport PYTHONDONTWRITEBYTECODE

help:
	@sed -n 's/^#   //p' Makefile

demo: $(VENV)/.has-view
	$(PY) examples/demo.py $(ARGS)

test: $(VENV)/.has-$(or $(EXTRAS),test)
	$(PYTEST) -m "not peers and not thorough" $(ARGS)

test-all: $(VENV)/.has-$(or $(EXTRAS),test)
	$(PYTEST) -m "not peers" $(ARGS)

test-peers: $(VENV)/.has-$(or $(EXTRAS),test$(comma)peers)
	$(PYTEST) -m peers $(ARGS)

test-versions:
	@$(find-python); "$$python" .ci/versions.py $(ARGS)

lint: $(VENV)/.has-$(or $(EXTRAS),dev)
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m pyright --pythonpath $(PY)

docs: $(VENV)/.has-$(or $(EXTRAS),docs)
	$(PY) -m sphinx -q -W --keep-going -b html -c docs -d build/docs . site
	@echo "site/index.html is the first page"

bench: $(VENV)/.has-bench
	$(PY) -m benchmarks $(ARGS)

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis build dist site docs/api
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# .has-NAME is the package with the extra NAME, or extras NAME,NAME, of pyproject.toml.
# Python makes the bytecode of what is imported; most of what is installed never is.
$(VENV)/.has-%: pyproject.toml
	@$(PY) -m pip --version >/dev/null 2>&1 || { $(find-python); \
	    echo "making $(VENV) with $$python"; "$$python" -m venv --clear $(VENV); }
	@echo "installing armillary[$*] in $(VENV)"
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-compile --editable ".[$*]"
	@touch $@

# Leaves the first of $(PYTHON) that is new enough in $$python.
define find-python
for python in $(PYTHON) none; do \
    "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
        && break; \
done; \
if [ "$$python" = none ]; then \
    echo "armillary needs Python 3.11 or newer; none of these is: $(PYTHON)." >&2; \
    echo "Install one, or name it: make PYTHON=/path/to/python3.11" >&2; \
    exit 1; \
fi
endef
