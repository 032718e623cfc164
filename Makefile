# Everything runs in the checkout's .venv; requirements/setup.py makes it, and gets bd, opencode and claude, where they are missing.
PYTHON ?= python3
BIN := .venv/bin
SETUP := $(PYTHON) requirements/setup.py
# More workers than the two cores of the machine that counts: tests on real tools wait for more than half of their time.
# Who runs what, and in which order: tests/spread.py.
WORKERS ?= 5
PARALLEL := -n $(WORKERS) --dist loadfile --max-worker-restart 4 --durations=10

.DEFAULT_GOAL := help
.PHONY: help setup venv claude page demo test quick check format lint types contracts docs wheel bd-wheel wheel-check release torture night month mishaps crowd soak torture-real powercut deep bench lock clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## get everything that is needed: .venv, opencode, bd (the first time about 10 minutes, later nothing)
	@$(SETUP) all

venv: ## make .venv only, from the pinned requirements
	@$(SETUP) python

claude: ## get Claude Code, which tests alone need (Linux on x64; 190 MB to fetch, 460 MB on the disk)
	@$(SETUP) claude
	@$(SETUP) claude-acp

page: venv ## build the page of `ashep ui` from web/
	@$(SETUP) page

demo: ## watch Agent Shepherd walk issues through a policy, offline; while bd is being built, in memory
	@$(SETUP) demo
	@$(BIN)/ashep demo

test: setup claude ## run the tests, the ones with the real bd, OpenCode and Claude Code included
	@$(BIN)/python -m pytest $(PARALLEL)

quick: venv ## run the tests that need neither bd nor OpenCode and take next to nothing: a minute
	@$(BIN)/python -m pytest $(PARALLEL) -n 3 -m "not real and not slow and not costly"

check: setup ## all that must hold before a commit: format, lint, types, contracts, tests, docs
	@$(MAKE) --no-print-directory lint types contracts test docs

format: venv ## put the code into its format
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix-only --quiet .

lint: venv ## check format and lint rules
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .

types: venv ## check types (basedpyright, strict)
	@$(BIN)/basedpyright

contracts: venv ## check who imports whom
	@$(BIN)/lint-imports --no-logo

docs: venv ## build the documentation into site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

wheel: page ## pack ashep with its page into dist/: one file, with which nobody else needs Node
	@rm -f dist/ashep-*.whl
	@$(BIN)/python -m hatchling build -t wheel -d dist

bd-wheel: venv ## pack bd for this platform into dist/ (52 MB; the first time bd is built, about 10 minutes)
	@$(SETUP) bd --build
	@rm -f dist/ashep_bd-*.whl
	@cd requirements/beads && ../../$(BIN)/python -m hatchling build -t wheel -d ../../dist

wheel-check: wheel ## install what is in dist/ where there is no Node, no Go and no checkout; try it there, up to a first issue that lands
	@$(BIN)/python -m tools.wheel_check

release: page ## version, changelog, wheels, checksums, commit and tag; nothing is uploaded (VERSION=0.2.0)
	@$(BIN)/python -m tools.release $(VERSION)

torture: venv ## live through simulated nights on lying tools and failing disks (SEEDS=20000, FIRST=0)
	@$(BIN)/python -m chaos.torture --seeds $(or $(SEEDS),20000) --first $(or $(FIRST),0)

night: venv ## live through simulated nights of 200 issues, three providers, people and outages (SEEDS=4, SEED=1)
	@$(BIN)/python -m chaos.night --seed $(or $(SEED),1) --seeds $(or $(SEEDS),4)

month: venv ## live through a simulated month of 500 issues, and ask what a policy without reviews of docs had done (SEED=1)
	@$(BIN)/python -m chaos.month --seed $(or $(SEED),1)

mishaps: setup ## live through a night on the real tools in which eight of fourteen issues go wrong, each in its own way
	@$(BIN)/python -m chaos.mishaps

crowd: venv ## land 200 issues that contradict each other in a few files (ISSUES=200, FILES=12, SEED=0)
	@$(BIN)/python -m chaos.crowd --issues $(or $(ISSUES),200) --files $(or $(FILES),12) --seed $(or $(SEED),0)

soak: setup ## a day of virtual time and half an hour on the real tools: does anything grow? (VIRTUAL=24h, REAL=30m)
	@$(BIN)/python -m chaos.soak --virtual $(or $(VIRTUAL),24h) --real $(or $(REAL),30m)

torture-real: setup ## kill the real ashep at every boundary of a life, once and twice (two hours; ARGS="--each 20": some)
	@$(BIN)/python -m chaos.killed $(ARGS)

powercut: venv ## cut the power at every moment of a life, on what real git wrote; needs strace (EACH=1, SEEDS=4)
	@$(BIN)/python -m chaos.powercut --each $(or $(EACH),1) --seeds $(or $(SEEDS),4)

deep: setup claude ## all of it in full, in parts of an hour each; goes on where it was (ARGS=--list, ARGS="mutants torture")
	@$(BIN)/python -m chaos.deep $(ARGS)

bench: setup ## measure
	@$(BIN)/python -m bench

lock: ## write the pinned requirements anew (UPGRADE=--upgrade: newest versions)
	@$(SETUP) lock $(UPGRADE)

clean: ## remove what can be made again (not the tools of this user's cache)
	@rm -rf .venv site build dist .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	@find ashep tests tools requirements -name __pycache__ -type d -prune -exec rm -rf {} +
