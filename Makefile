# deepseek-edu: everything starts here. `make help` lists the commands.
PYTHON  ?= python3
PORT    ?= 8000
TORCH   ?= torch==2.13.0
VENV    := .venv
BIN     := $(VENV)/bin
PIP     := $(BIN)/python -m pip --disable-pip-version-check
# npm finds the node that came with it from PyPI, not one of the system's
NPM     := PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/npm

.DEFAULT_GOAL := help
.PHONY: help serve site test mutants notebook bench lint lock clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-9s %s\n", $$1, $$2}' Makefile

serve: $(VENV)/.site node_modules/.stamp ## set everything up, build the site and serve it (PORT=8000)
	@$(BIN)/deepseek-edu serve --port $(PORT)

site: $(VENV)/.site node_modules/.stamp ## build the site into site/
	@$(BIN)/deepseek-edu build

test: $(VENV)/.dev $(VENV)/.torch node_modules/.stamp ## run every test, real Chromium included
	@$(BIN)/python -m tests.browser.chromium
	@$(BIN)/python -m pytest -n 2 --dist worksteal $(ARGS)

mutants: $(VENV)/.dev $(VENV)/.torch ## show that each deliberately wrong variant is caught by a named test
	@$(BIN)/python -m tests.mutants

notebook: .venv-jupyter/.stamp ## open the notebooks in JupyterLab
	@.venv-jupyter/bin/jupyter lab --notebook-dir=notebooks $(if $(filter 0,$(shell id -u)),--allow-root)

bench: $(VENV)/.dev $(VENV)/.torch node_modules/.stamp ## measure speed and size, ARGS=site or ARGS=model for one part; results go to build/bench.json
	@$(BIN)/python -m tests.bench $(ARGS)

lint: $(VENV)/.dev node_modules/.stamp ## check style and types
	@$(BIN)/ruff check .
	@$(NPM) run --silent typecheck

lock: ## write requirements/*.txt anew from requirements/*.in (needs uv)
	@for name in site dev jupyter; do \
	  uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	    --no-header --no-annotate requirements/$$name.in -o requirements/$$name.txt || exit 1; done

clean: ## remove what was built and installed; the sources stay
	rm -rf site build dist .cache $(VENV) .venv-jupyter node_modules .pytest_cache .ruff_cache .hypothesis

# ── set-up; each stamp is remade only when its lock changes ─────────────────────────────────────────────────────────
$(BIN)/python:
	@$(PYTHON) -c 'import sys; v = sys.version_info; \
	  sys.exit(0 if v >= (3, 11) else f"Python {v[0]}.{v[1]} found, 3.11 or newer is needed: make PYTHON=/path/to/python3.12 …")'
	@echo "Making the virtual environment in $(VENV) …"
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "python3 could not make a virtual environment. On Debian and Ubuntu: apt install python3-venv"; exit 1; }

$(VENV)/.site: requirements/site.txt pyproject.toml | $(BIN)/python
	@echo "Installing the pinned Python packages (about 60 MB to load, once) …"
	@$(PIP) install --quiet --require-hashes -r requirements/site.txt
	@$(PIP) install --quiet --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.site
	@echo "Installing the test tools …"
	@$(PIP) install --quiet --require-hashes -r requirements/dev.txt
	@touch $@

# not in a hashed lock: which file fits depends on the machine (with or without a GPU)
$(VENV)/.torch: $(VENV)/.site
	@echo "Installing PyTorch for the model's tests (once; TORCH=… names another build) …"
	@$(PIP) install --quiet '$(TORCH)'
	@touch $@

.venv-jupyter/.stamp: requirements/jupyter.txt pyproject.toml
	@echo "Installing JupyterLab in .venv-jupyter (once) …"
	@test -x .venv-jupyter/bin/python || $(PYTHON) -m venv .venv-jupyter
	@.venv-jupyter/bin/python -m pip --disable-pip-version-check install --quiet --require-hashes -r requirements/jupyter.txt
	@.venv-jupyter/bin/python -m pip --disable-pip-version-check install --quiet --no-deps -e .
	@touch $@

node_modules/.stamp: package-lock.json .npmrc $(VENV)/.site
	@echo "Installing the pinned browser packages …"
	@$(NPM) ci --silent --no-audit --no-fund
	@touch $@
