# Two commands are enough on a machine with Python 3.10 or later, git and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MEMBERS := -e '.[test]' -e integrations/langchain -e integrations/llama-index
PROJECTS := pyproject.toml constraints.txt $(wildcard integrations/*/pyproject.toml)

# LlamaIndex brings what it needs, and looks elsewhere where these are set.
unexport TIKTOKEN_CACHE_DIR NLTK_DATA

# Two that hand streamed answers over in other ways than the newest: token by token, and as one piece.
LLAMA_INDEX_RELEASES := 0.14.21 0.14.24
LLAMA_INDEX_TOOLS := pytest pytest-asyncio llama-index-retrievers-bm25 openinference-instrumentation-llama-index starlette uvicorn

PEER_TOOLS := langchain langchain-community langchain-openai langgraph llama-index-retrievers-bm25 pytest pytest-asyncio \
  hypothesis opentelemetry-exporter-otlp-proto-http starlette uvicorn

.PHONY: demo test test-llama-index-releases peers check format install build constraints clean

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

# $(call install_into,ENVIRONMENT,CONSTRAINTS,WHAT). uv installs several times faster than pip; where it cannot be had, pip
# does the same job. Files are copied: NLTK, which LlamaIndex uses, refuses to read data that are hard links into uv's cache.
define install_into
	@echo "Installing into $(1) ..."
	@if $(BIN)/uv --version >/dev/null 2>&1; then \
	  $(BIN)/uv pip install --quiet --link-mode=copy --python $(1)/bin/python -c $(2) $(3); \
	else \
	  $(1)/bin/python -m pip install --quiet --disable-pip-version-check -c $(2) $(3); \
	fi
endef

$(VENV)/.installed: $(PROJECTS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "ragspan needs Python 3.10 or later; name one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "Python cannot make a virtual environment; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv 2>/dev/null || true
	$(call install_into,$(VENV),constraints.txt,$(MEMBERS))
	@touch $@

test-llama-index-releases: $(LLAMA_INDEX_RELEASES:%=.venv-llama-index-%/.installed)  ## the LlamaIndex tests on other releases of it
	@for release in $(LLAMA_INDEX_RELEASES); do \
	  echo "Testing on llama-index-core $$release ..."; \
	  .venv-llama-index-$$release/bin/python -m pytest -q -m "not slow" integrations/llama-index/tests || exit; \
	done

.venv-llama-index-%/.installed: $(VENV)/.installed
	@$(BIN)/python -m venv --clear $(@D)
	@grep -v '^llama-index' constraints.txt > $(@D)/constraints.txt
	$(call install_into,$(@D),$(@D)/constraints.txt,llama-index-core==$* -e . -e integrations/llama-index $(LLAMA_INDEX_TOOLS))
	@touch $@

peers: .venv-peers/.installed .venv-judging-peers/.installed  ## what the benchmarks compare ragspan with; needs uv

# The frameworks are the tested ones; whatever else the peers bring is theirs to choose.
.venv-peers/.installed: $(VENV)/.installed
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(@D)
	@grep -E '^(langchain|langgraph|llama-index|openinference|opentelemetry)' constraints.txt > $(@D)/constraints.txt
	$(BIN)/uv pip install --quiet --link-mode=copy --python $(@D)/bin/python -c $(@D)/constraints.txt \
	  -e . -e integrations/langchain -e integrations/llama-index --group peers $(PEER_TOOLS)
	@touch $@

.venv-judging-peers/.installed: $(VENV)/.installed
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(@D)
	$(BIN)/uv pip install --quiet --link-mode=copy --python $(@D)/bin/python --group judging-peers
	@touch $@

build: install  ## wheels of every member, into dist/
	rm -rf dist
	$(BIN)/uv build --quiet --wheel --all-packages --out-dir dist

constraints: install  ## resolve the tested versions anew
	$(BIN)/uv pip compile --quiet --universal --python-version 3.10 --no-header --no-annotate --all-extras \
	  pyproject.toml integrations/*/pyproject.toml | grep -Ev '^(-e |ragspan)' > constraints.tmp
	mv constraints.tmp constraints.txt

clean:
	rm -rf $(VENV) .venv-llama-index-* .venv-peers .venv-judging-peers dist
