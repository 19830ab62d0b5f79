# Two commands are enough on a machine with Python 3.10 or later, git and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MEMBERS := -e '.[test]' -e integrations/langchain -e integrations/llama-index
PROJECTS := pyproject.toml constraints.txt $(wildcard integrations/*/pyproject.toml)

.PHONY: demo test check format install build constraints clean

demo: install  ## answer a dozen questions and show every answer's trace with its scores
	@$(BIN)/ragspan demo

test: install  ## run every test
	$(BIN)/python -m pytest

check: install  ## formatting, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy tests/typing examples benchmarks
	$(BIN)/lint-imports

format: install
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

install: $(VENV)/.installed  ## .venv with every workspace member and the test tools

# uv installs several times faster than pip; where it cannot be had, pip does the same job.
$(VENV)/.installed: $(PROJECTS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "ragspan needs Python 3.10 or later; name one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "Python cannot make a virtual environment; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@echo "Installing into $(VENV) ..."
	@if $(BIN)/python -m pip install --quiet --disable-pip-version-check uv 2>/dev/null && $(BIN)/uv --version >/dev/null 2>&1; then \
	  $(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt $(MEMBERS); \
	else \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt $(MEMBERS); \
	fi
	@touch $@

build: install  ## wheels of every member, into dist/
	rm -rf dist
	$(BIN)/uv build --quiet --wheel --all-packages --out-dir dist

constraints: install  ## resolve the tested versions anew
	$(BIN)/uv pip compile --quiet --universal --python-version 3.10 --no-header --no-annotate --all-extras \
	  pyproject.toml integrations/*/pyproject.toml | grep -Ev '^(-e |ragspan)' > constraints.tmp
	mv constraints.tmp constraints.txt

clean:
	rm -rf $(VENV) dist
