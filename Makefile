# Two commands are enough on a machine with Python 3.10 or later, git and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
MEMBERS := -e '.[test]' -e integrations/langchain -e integrations/llama-index -e integrations/nats -e integrations/receiver -e 'integrations/receiver[grpc]'
PROJECTS := pyproject.toml constraints.txt $(wildcard integrations/*/pyproject.toml)

# LlamaIndex brings what it needs, and looks elsewhere where these are set.
unexport TIKTOKEN_CACHE_DIR NLTK_DATA

# Where Python may keep no bytecode, each process of the tests compiles whatever it imports: half of their time.
unexport PYTHONDONTWRITEBYTECODE

# Of LlamaIndex two that hand streamed answers over in other ways than the newest: token by token, and as one piece.
OLDEST := langchain-core==1.0.0 langchain==1.0.0 langgraph==1.0.0 langgraph-prebuilt==1.0.0 llama-index-core==0.14.21
BETWEEN := llama-index-core==0.14.24

HHEM_TORCH := torch==2.13.0
HHEM_TOOLS := transformers pytest pytest-asyncio hypothesis opentelemetry-exporter-otlp-proto-http

# Too heavy for the environment of the other tests.
ENVIRONMENT_MEMBERS := -e '.[otlp]' -e integrations/langchain
ENVIRONMENT_TOOLS := uwsgi celery eventlet gevent hypercorn ipykernel nbclient pyinstaller uvicorn-worker gunicorn starlette uvicorn hypothesis pytest pytest-asyncio trustme opentelemetry-distro pytest-xdist

# The oldest and the newest that we support, and what their own suites need.
NEIGHBOURS_oldest := langchain-core==1.0.0 langgraph==1.0.0 'pytest<9' 'syrupy<5' 'pytest-asyncio<1'
NEIGHBOURS_newest := langchain-core==1.8.3 langgraph==1.2.24 'pytest>=9.0.3,<10' 'syrupy>=5,<6' 'pytest-asyncio>=1.3'
NEIGHBOUR_TOOLS := hatchling blockbuster freezegun grandalf httpx langchain-tests langgraph-checkpoint-postgres langgraph-checkpoint-sqlite \
  numpy psutil 'psycopg[binary]' pycryptodome pytest-benchmark pytest-codspeed pytest-dotenv pytest-mock pytest-repeat pytest-socket \
  pytest-xdist redis responses uvloop

PEER_TOOLS := langchain langchain-community langchain-openai langgraph llama-index-llms-openai llama-index-retrievers-bm25 pytest pytest-asyncio \
  hypothesis opentelemetry-exporter-otlp-proto-http starlette uvicorn

# The tools whose pages the end-to-end tests read: other releases of them may look different.
PHOENIX := 20.26.1
MLFLOW := 3.18.0
E2E_MEMBERS := -e '.[phoenix,mlflow]' -e 'integrations/langchain[demo]' -e integrations/llama-index -e integrations/nats -e integrations/receiver
E2E_TOOLS := pytest playwright==1.65.2 httpx opentelemetry-exporter-otlp-proto-http
CLIENT_MEMBERS := -e '.[datadog,langfuse,langsmith]' -e integrations/langchain
CLIENT_TOOLS := ddtrace langfuse langsmith opentelemetry-exporter-otlp-proto-http hypothesis pytest pytest-asyncio \
  langchain langchain-classic langchain-openai langgraph openinference-instrumentation-langchain opentelemetry-instrumentation-langchain

E2E := .venv-e2e/.installed .venv-phoenix/.installed-$(PHOENIX) .venv-mlflow/.installed-$(MLFLOW)

.PHONY: test-clients test-deploys test-slow test-alone environments docs docs-build pages e2e e2e-nightly pictures phoenix chromium demo test test-all test-push nightly test-oldest test-between test-hhem test-environments test-neighbours test-newest-neighbours peers check format install build constraints clean

# The demo runs where everything is installed already, else in a small environment of its own.
DEMO := $(if $(wildcard $(VENV)/.installed),$(VENV),.venv-demo)
DEMO_MEMBERS := -e . -e 'integrations/langchain[demo]' -e integrations/llama-index

demo: $(DEMO)/.installed  ## answer seven questions, well and badly, and show each answer with its scores
	@$(DEMO)/bin/ragspan demo

# A file's tests run in one process, so that what they share is made once; with `each`, a process has files of its own from the
# start, and imports what these need and no more (conftest.py). Tests wait for servers and processes, and use less than half of a
# core: more of them run than there are cores, and fewer of the slow ones, which start processes themselves.
CORES = $(shell $(PYTHON) -c 'import os; print(os.cpu_count() or 1)')
WORKERS = $(shell $(PYTHON) -c 'print(min(8, $(CORES) * 7 // 2))')
SLOW_WORKERS = $(shell $(PYTHON) -c 'print(min(8, $(CORES) * 2))')

test: install  ## the tests that take no longer than seconds, in parallel
	$(BIN)/python -m pytest -n $(WORKERS) --dist each --max-worker-restart=0 -o console_output_style=classic -m "not slow and not alone"

test-slow: install  ## the slow tests, in parallel
	$(BIN)/python -m pytest -n $(SLOW_WORKERS) --dist loadfile -m "slow and not alone"

test-alone: install  ## the tests that want the machine for themselves
	$(BIN)/python -m pytest -m alone

test-all: test test-slow test-alone  ## every test

check: install  ## formatting, lint, types, layers, wording
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy tests/typing examples benchmarks
	$(BIN)/basedpyright
	$(BIN)/lint-imports
	$(BIN)/python .ci/wording.py

format: install
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

install: $(VENV)/.installed  ## .venv with every workspace member and the test tools

# $(call make_environment,ENVIRONMENT): an empty one, with uv if it can be had.
define make_environment
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "ragspan needs Python 3.10 or later; name one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(1) || { echo "Python cannot make a virtual environment; on Debian and Ubuntu, as root: apt-get install python3-venv" >&2; exit 1; }
	@$(1)/bin/python -m pip install --quiet --disable-pip-version-check uv 2>/dev/null || true
endef

# $(call install_into,ENVIRONMENT,CONSTRAINTS,WHAT). uv installs several times faster than pip; where it cannot be had, pip
# does the same job. Files are copied: NLTK, which LlamaIndex uses, refuses to read data that are hard links into uv's cache.
define install_into
	@echo "Installing into $(1) ..."
	@if $(UV) --version >/dev/null 2>&1; then \
	  $(UV) pip install --quiet --link-mode=copy --python $(1)/bin/python -c $(2) $(3); \
	else \
	  $(1)/bin/python -m pip install --quiet --disable-pip-version-check -c $(2) $(3); \
	fi
endef

$(VENV)/.installed: $(PROJECTS)
	$(call make_environment,$(VENV))
	$(call install_into,$(VENV),constraints.txt,$(MEMBERS))
	$(call install_into,$(VENV),constraints.txt,--no-deps -e integrations/hhem)
	@touch $@

# What has installed the rest is a third of it, and is taken out again.
.venv-demo/.installed: UV := .venv-demo/bin/uv
.venv-demo/.installed: export PIP_NO_COMPILE := 1
.venv-demo/.installed: $(PROJECTS)
	$(call make_environment,.venv-demo)
	$(call install_into,.venv-demo,constraints.txt,$(DEMO_MEMBERS))
	@.venv-demo/bin/python -m pip uninstall --quiet --yes uv setuptools pip 2>/dev/null || true
	@touch $@

# Old names warn there, and some of what these tests use is newer.
NEWER_THAN_OLDEST := newest_protocol or tools_results_that_it_was_written_from or breakpoint_before or fusion or makes_no_model
test-oldest: .venv-oldest/.installed  ## the programs of both frameworks on the oldest releases that we support
	.venv-oldest/bin/python -m pytest -q -n $(WORKERS) -W ignore -m "not slow and not alone" -k "not ($(NEWER_THAN_OLDEST))" \
	  --ignore=integrations/langchain/tests/test_instrumentors.py --ignore=integrations/langchain/tests/test_neighbours.py integrations/langchain/tests
	.venv-oldest/bin/python -m pytest -q -n $(WORKERS) -m "not slow" -k "not (never_read and refine)" integrations/llama-index/tests

.venv-oldest/.installed: $(VENV)/.installed
	@$(BIN)/python -m venv --clear $(@D)
	$(call install_into,$(@D),/dev/null,$(OLDEST) -e '.[test]' -e integrations/langchain -e integrations/llama-index -e integrations/receiver)
	@touch $@

test-between: .venv-between/.installed  ## the LlamaIndex tests on a release between the oldest and the newest
	.venv-between/bin/python -m pytest -q -n $(WORKERS) -m "not slow" integrations/llama-index/tests

.venv-between/.installed: $(VENV)/.installed
	@$(BIN)/python -m venv --clear $(@D)
	@grep -v '^llama-index' constraints.txt > $(@D)/constraints.txt
	$(call install_into,$(@D),$(@D)/constraints.txt,$(BETWEEN) -e '.[test]' -e integrations/langchain -e integrations/llama-index -e integrations/receiver)
	@touch $@

test-hhem: .venv-hhem/.installed  ## the tests of HHEM that need torch, which the others skip; compares with transformers
	.venv-hhem/bin/python -m pytest -q integrations/hhem/tests

# torch by pip, whose configuration may name a place for builds without CUDA, a tenth of the size; uv does not read it.
.venv-hhem/.installed: $(VENV)/.installed
	@$(BIN)/python -m venv --clear $(@D)
	@echo "Installing torch into $(@D) ..."
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt $(HHEM_TORCH)
	$(call install_into,$(@D),constraints.txt,-e . -e integrations/hhem $(HHEM_TORCH) $(HHEM_TOOLS))
	@touch $@

test-clients: .venv-clients/.installed  ## the native writers, and the handlers, beside the tools' own clients, which the other tests skip
	.venv-clients/bin/python -m pytest -q tests/tools/langfuse tests/tools/langsmith tests/tools/datadog -k "client or library"
	.venv-clients/bin/python -m pytest -q integrations/langchain/tests/test_instrumentors.py

.venv-clients/.installed: $(VENV)/.installed
	@$(BIN)/python -m venv --clear $(@D)
	$(call install_into,$(@D),/dev/null,$(CLIENT_MEMBERS) $(CLIENT_TOOLS))
	@touch $@

test-environments: .venv-environments/.installed  ## the servers, workers and tools that the other tests skip
	.venv-environments/bin/python -m pytest -q -n $(SLOW_WORKERS) tests/environments tests/telemetry/test_notebook_cells.py -k "celery or hypercorn or gevent or eventlet or uwsgi or UvicornWorker or notebook or pyinstaller"

# What `rest` leaves out runs with the slow tests.
DEPLOYS := whole
test-deploys: .venv-environments/.installed  ## the whole table of deploys, or its rest: servers under load that get SIGTERM
	DEPLOYS=$(DEPLOYS) .venv-environments/bin/python -m pytest -q -n $(SLOW_WORKERS) tests/environments/test_deploys.py

.venv-environments/.installed: $(VENV)/.installed
	@$(BIN)/python -m venv --clear $(@D)
	$(call install_into,$(@D),constraints.txt,$(ENVIRONMENT_MEMBERS) $(ENVIRONMENT_TOOLS))
	@touch $@

test-newest-neighbours: .venv-neighbours-newest/.installed  ## langchain-core's and langgraph's own suites with our instrumentor attached
	.venv-neighbours-newest/bin/python .ci/neighbours.py langchain-core langgraph

test-neighbours: test-newest-neighbours .venv-neighbours-oldest/.installed  ## the same, and that of the oldest langchain-core that we support
	.venv-neighbours-oldest/bin/python .ci/neighbours.py langchain-core

.venv-neighbours-%/.installed: $(VENV)/.installed
	@$(BIN)/python -m venv --clear $(@D)
	$(call install_into,$(@D),/dev/null,-e . -e integrations/langchain $(NEIGHBOURS_$*) $(NEIGHBOUR_TOOLS))
	@touch $@

environments: .venv-oldest/.installed .venv-environments/.installed $(E2E) chromium  ## what CI needs beside .venv

# What the other tests leave out because it takes long: CI runs these on every push, and the rest of the slow ones at night.
test-push: .venv-environments/.installed $(E2E) chromium  ## three deploys, gevent, a kill -9 of the fleet, a page of Phoenix and of MLflow
	DEPLOYS=push .venv-environments/bin/python -m pytest -q -n $(CORES) tests/environments/test_deploys.py tests/environments/test_greenlets.py -k "$(PUSHED)"
	$(BIN)/python -m pytest -q integrations/nats/tests/fleet/test_fleet_kills.py -k "killed_worker"
	.venv-e2e/bin/python -m pytest -c e2e/pytest.ini -q e2e/test_phoenix.py e2e/test_mlflow.py

PUSHED := (until_sigterm and configure and not preload and (gthread or prefork or (uvicorn and workers))) or test_greenlets

nightly: test test-slow test-alone e2e test-environments test-deploys test-oldest test-between test-hhem test-neighbours test-clients  ## all there is

docs: .venv-docs/.installed  ## the documentation as a site, at http://localhost:8000
	$(MKDOCS) serve

pages: install  ## the parts of the documentation that come from the code
	$(BIN)/python .ci/pages.py

docs-build: .venv-docs/.installed  ## the site into site/; a broken link or a name without its entry is an error
	$(MKDOCS) build --strict --quiet

# The variable silences an announcement of another tool.
MKDOCS := NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs

.venv-docs/.installed: | $(VENV)/.installed
	@$(BIN)/python -m venv --clear $(@D)
	$(call install_into,$(@D),constraints.txt,--group docs)
	@touch $@

e2e: $(E2E) chromium  ## answers with their scores in a real Phoenix and a real MLflow, as a browser shows them
	.venv-e2e/bin/python -m pytest -c e2e/pytest.ini -q -m "not nightly" e2e

e2e-nightly: $(E2E) chromium  ## the rest of it
	.venv-e2e/bin/python -m pytest -c e2e/pytest.ini -q -m nightly e2e

pictures: $(E2E) chromium  ## the documentation's pictures: what the demo prints, and what the browser shows
	$(BIN)/python e2e/draw_demo.py docs/demo.svg
	.venv-e2e/bin/python -m pytest -c e2e/pytest.ini -q e2e -k "show or look or picture" --pictures=docs/images

phoenix: .venv-e2e/.installed .venv-phoenix/.installed-$(PHOENIX)  ## a Phoenix on this machine with the demo's answers, until Ctrl-C
	@.venv-e2e/bin/python e2e/show_phoenix.py

.venv-e2e/.installed: $(VENV)/.installed
	@$(BIN)/python -m venv --clear $(@D)
	$(call install_into,$(@D),constraints.txt,$(E2E_MEMBERS) $(E2E_TOOLS))
	@touch $@

# What these bring along is theirs to choose. They are not made anew when ragspan's dependencies change. MLflow's own parts come out
# later than MLflow: what it needs is that of the newest release whose parts are all there.
.venv-phoenix/.installed-%: | $(VENV)/.installed
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Phoenix needs Python 3.11 or later; name one: make PYTHON=python3.12" >&2; exit 1; }
	@$(BIN)/python -m venv --clear $(@D)
	$(call install_into,$(@D),/dev/null,arize-phoenix==$*)
	@touch $@

.venv-mlflow/.installed-%: | $(VENV)/.installed
	@$(BIN)/python -m venv --clear $(@D)
	$(call install_into,$(@D),/dev/null,'mlflow<=$*')
	$(call install_into,$(@D),/dev/null,--no-deps mlflow==$*)
	@touch $@

CHROMIUM := chromium fonts-dejavu-core
chromium:
	@for name in chromium chromium-browser google-chrome; do command -v $$name >/dev/null && exit 0; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "Installing Chromium ..."; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $(CHROMIUM) >/dev/null; \
	else \
	  echo "make e2e needs Chromium; on Debian and Ubuntu, as root: apt-get install $(CHROMIUM)" >&2; exit 1; \
	fi

peers: .venv-peers/.installed  ## instrumentors whose spans benchmarks/capture.py reads; needs uv

# The frameworks are the tested ones; whatever else the peers bring is theirs to choose.
.venv-peers/.installed: $(VENV)/.installed
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(@D)
	@grep -E '^(langchain|langgraph|llama-index|openinference|opentelemetry)' constraints.txt > $(@D)/constraints.txt
	$(BIN)/uv pip install --quiet --link-mode=copy --python $(@D)/bin/python -c $(@D)/constraints.txt \
	  -e . -e integrations/langchain -e integrations/llama-index -e integrations/receiver --group peers $(PEER_TOOLS)
	@touch $@

build: install  ## wheels and sdists of every distribution, into dist/
	rm -rf dist
	$(BIN)/uv build --quiet --all-packages --out-dir dist

constraints: install  ## resolve the tested versions anew
	$(BIN)/uv pip compile --quiet --universal --python-version 3.10 --no-header --no-annotate --all-extras \
	  pyproject.toml integrations/*/pyproject.toml | grep -Ev '^(-e |ragspan|torch|triton|nvidia-|cuda-)' > constraints.tmp
	mv constraints.tmp constraints.txt

clean:
	rm -rf $(VENV) .venv-oldest .venv-between .venv-hhem .venv-clients .venv-environments .venv-neighbours-* .venv-peers .venv-e2e .venv-phoenix .venv-mlflow .venv-docs .venv-demo .phoenix dist site
