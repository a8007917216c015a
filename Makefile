# All commands for a checkout; run `make` to list them.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PORT ?= 8000
# Number of web processes that `make up` starts, on PORT and the following ports.
WEB_PROCESSES ?= 1
NODES ?= 4
# Another package index for torch, as listed on PyTorch's installation page (for example the one for
# ROCm). Empty: the CPU build on Linux without an NVIDIA GPU, otherwise the usual build.
TORCH_INDEX_URL ?=
TORCH_CPU_INDEX_URL := https://download.pytorch.org/whl/cpu

VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check
# Bytecode is compiled after the installation on all cores; pip would use one. A few packages contain files
# that are not valid in this version of Python, hence `|| true`.
INSTALL := $(PIP) install --no-compile
COMPILE := $(PY) -W ignore -m compileall -qq -j 0 $(VENV)/lib || true
PROJECTS := pyproject.toml node_client/pyproject.toml constraints.txt $(wildcard node_client/pycosat/*)
CHECKED := swarm_web judge tests bench node_client/src node_client/pycosat
# The tests start dozens of processes that import the same modules; without bytecode each compiles them.
unexport PYTHONDONTWRITEBYTECODE
# A variable, because a comma would end an argument of $(call).
FOR_TESTS := '.[embedded,dev]'

# $(call stage,NAME,COMMAND): a header, the command, the time it took.
stage = @printf '\n==> %s\n' '$(1)'; $(2); printf '    %s: %s s\n' '$(1)' "$$SECONDS"

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | \
		while IFS=$$'\t' read -r name text; do printf '  make %-12s %s\n' "$$name" "$$text"; done

# ---- installing; pip prints its progress, because it takes minutes
.PHONY: install
install: $(VENV)/installed ## Create .venv and install everything that the site and a node need

$(VENV)/bin/python:
	@python=; for name in python3.11 python3.12 python3.13 python3.14 python3; do \
		if "$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
		then python=$$name; break; fi; \
	done; \
	if [ -z "$$python" ]; then \
		echo 'Python 3.11 or newer is needed and was not found.' >&2; \
		echo 'Install it (Debian, Ubuntu: apt-get install python3 python3-venv), then try again.' >&2; \
		exit 1; \
	fi; \
	echo "==> Creating $(VENV) with $$($$python --version)"; \
	"$$python" -m venv $(VENV) || { rm -rf $(VENV); \
		echo 'Debian and Ubuntu need one more package: apt-get install python3-venv' >&2; exit 1; }

# The site's requirements. The server uses the client's protocol and tasks, never its trainer, so it
# does not need torch. node_client/pycosat replaces a package that needs a compiler.
$(VENV)/installed-site: $(PROJECTS) | $(VENV)/bin/python
	$(call stage,Installing the site,$(INSTALL) -c constraints.txt ./node_client/pycosat \
		-e '.[embedded]'; $(INSTALL) --no-deps -e ./node_client; $(COMPILE))
	@$(PY) -m swarm_web.catalogues compile
	@touch $@

# torch first, so that packages that depend on it use this build.
$(VENV)/installed: $(VENV)/installed-site
	$(call stage,Installing torch,$(install_torch))
	$(call stage,Installing the node client,$(INSTALL) -c constraints.txt -e ./node_client; $(COMPILE))
	@touch $@

# The CPU index may be unreachable or slow: try it once briefly, then use the usual index. Only
# torch is taken from it (--no-deps), because it has few versions of other packages.
define install_torch
if [ -n '$(TORCH_INDEX_URL)' ]; then \
	$(INSTALL) -c constraints.txt --extra-index-url '$(TORCH_INDEX_URL)' torch; \
elif [ "$$(uname -s)" = Linux ] && ! nvidia-smi --list-gpus 2>/dev/null | grep -q .; then \
	echo 'No NVIDIA GPU found: installing the CPU build of PyTorch (about 200 MB).'; \
	$(INSTALL) --no-deps --index-url $(TORCH_CPU_INDEX_URL) --timeout 5 --retries 1 \
		"$$(grep '^torch==' constraints.txt)" || { \
		echo 'It is not available here: installing the usual build, with CUDA (about 3 GB).'; \
		$(INSTALL) -c constraints.txt torch; }; \
else $(INSTALL) -c constraints.txt torch; fi
endef

$(VENV)/installed-dev: $(VENV)/installed
	$(call stage,Installing the tools for tests,$(INSTALL) -c constraints.txt -e $(FOR_TESTS); $(COMPILE))
	@touch $@

# ---- languages
.PHONY: messages
messages: $(VENV)/installed-site ## Update locale/ from the strings in templates and code
	@$(PY) -m swarm_web.catalogues update

# ---- running
.PHONY: demo up admin
demo: $(VENV)/installed ## Start the site and NODES=4 nodes that train on this machine, on PORT=8000
	@exec $(PY) -m swarm_web.local demo --port $(PORT) --nodes $(NODES)

up: $(VENV)/installed-site ## Start the site without nodes
	@exec $(PY) -m swarm_web.local up --port $(PORT) --web-processes $(WEB_PROCESSES)

admin: $(VENV)/installed-site ## Create an administrator of the running site
	@exec $(PY) -m swarm_web.local manage createsuperuser

# ---- measuring: each prints a table and writes bench/results/NAME.json
.PHONY: bench-judge
bench-judge: $(VENV)/installed-dev ## Measure a judge round of 1,000 nodes, grading and ranking
	@$(PY) -m bench.judge

.PHONY: bench-relay
bench-relay: $(VENV)/installed-dev ## Measure the site's cost of a node-round, beside a bare relay
	@$(PY) -m bench.relay

.PHONY: bench-calibration
bench-calibration: $(VENV)/installed-dev ## Simulate seasons: false claims, and questions needed for a claim
	@$(PY) -m bench.calibration

.PHONY: bench-web
bench-web: $(VENV)/installed-dev ## Measure pages, downloads and live updates with five million answers
	@$(PY) -m bench.web

.PHONY: bench-node
bench-node: $(VENV)/installed-dev ## Measure a training step beside trl's, in time and memory
	@$(PY) -m bench.node

.PHONY: bench-gpu
bench-gpu: $(VENV)/installed-dev ## Measure training on a GPU, against the CPU and beside trl
	@$(PY) -m bench.gpu

.PHONY: bench-half-billion bench-flat-memory
bench-half-billion: $(VENV)/installed-dev ## Run all stages of a node with a model of half a billion parameters
	@$(PY) -m bench.half_billion

bench-flat-memory: $(VENV)/installed-dev ## Measure a node's memory over 2,000 steps
	@$(PY) -m bench.flat_memory

# ---- drawing: the README's pictures
.PHONY: picture
picture: $(VENV)/installed-dev ## Draw the panel of a real run into docs/images/panel.svg
	@$(PY) -m tests.node_client.picture

.PHONY: screenshots
screenshots: $(VENV)/installed-dev chromium ## Save screenshots of every page to var/screenshots/; PICTURES=1 also updates the README's
	@DJANGO_SETTINGS_MODULE=swarm_web.settings $(PY) -m tests.browser.screenshots $(if $(PICTURES),--pictures)

# ---- checking
# Each worker takes the next file, in the order set by tests/conftest.py.
PYTEST := $(PY) -m pytest --maxprocesses 8 --dist loadfile --no-loadscope-reorder

.PHONY: check test static quick lint types contracts django-checks pytest chromium
check: $(VENV)/installed-dev ## Check style, types, imports and the quick tests
	@$(MAKE) --no-print-directory -j2 quick static
	@printf '\nThe quick checks passed; make test checks everything.\n'

test: ## Check everything: style, types, imports, behaviour
	@$(MAKE) --no-print-directory -j2 $(VENV)/installed-dev chromium
	@$(MAKE) --no-print-directory -j2 pytest static
	@printf '\nAll checks passed.\n'

static: lint contracts types django-checks

lint: $(VENV)/installed-dev ## Check style and formatting
	$(call stage,Style,$(VENV)/bin/ruff check .)
	$(call stage,Formatting,$(VENV)/bin/ruff format --check .)

# The check for Windows only finds calls in our own code that Windows does not have. It skips the types of
# libraries, which take minutes to read without a cache.
OUR_CODE_ALONE := --follow-imports skip --no-warn-unused-ignores --no-warn-return-any \
	--allow-untyped-decorators --allow-subclassing-any

types: $(VENV)/installed-dev ## Check the types
	$(call stage,Types,DEBUG=true $(VENV)/bin/mypy $(CHECKED))
	$(call stage,Types on Windows,DEBUG=true $(VENV)/bin/mypy --platform win32 \
		--cache-dir .mypy_cache/win32 $(OUR_CODE_ALONE) \
		node_client/src/node_client node_client/src/swarm_protocol)

contracts: $(VENV)/installed-dev ## Check the import rules
	$(call stage,Import contracts,PYTHONPATH=.:node_client/src $(VENV)/bin/lint-imports)

# Neither needs a database; makemigrations only warns that there is none.
django-checks: $(VENV)/installed-dev
	$(call stage,Migrations,DEBUG=true $(PY) -W ignore::RuntimeWarning manage.py \
		makemigrations --check --dry-run)
	$(call stage,Production settings,SECRET_KEY="$$($(PY) -c 'import secrets; print(secrets.token_hex(32))')" \
		SITE_URL=https://swarm.example ALLOWED_HOSTS=swarm.example \
		$(PY) manage.py check --deploy --fail-level WARNING)

quick: $(VENV)/installed-dev
	$(call stage,Quick tests,$(PYTEST) -n auto -m 'not (swarm or browser or slow)')

# One worker more than cores: many of these tests wait for processes that they started.
pytest: $(VENV)/installed-dev chromium
	$(call stage,Tests,$(PYTEST) -n $$(($$(getconf _NPROCESSORS_ONLN) + 1)))

# Any Chromium works; Debian's headless shell takes half of the CPU time.
chromium:
	@if command -v chromium-headless-shell >/dev/null; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo '==> Installing Chromium for the browser tests'; \
		if apt-get update && DEBIAN_FRONTEND=noninteractive \
			apt-get install -y --no-install-recommends chromium-headless-shell; then exit 0; fi; \
	fi; \
	if ! command -v chromium chromium-browser google-chrome >/dev/null; then \
		echo 'The browser tests need Chromium. Install the package `chromium-headless-shell`' >&2; \
		echo '(Debian: sudo apt-get install chromium-headless-shell) and try again.' >&2; \
		exit 1; \
	fi

format: $(VENV)/installed-dev ## Format the code and sort the imports
	@$(VENV)/bin/ruff check --fix . && $(VENV)/bin/ruff format .

clean: ## Remove .venv, caches and build results; the site's data in var/ stays
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: format clean
