# Each target does its own set-up: python3, make and a package index are all that a machine needs.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo test test-clients test-targets lint types unit peers bench soak silence isolation resume fuzz properties conformance schemas format clean

setup: .venv/.ready

.venv/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

demo: setup
	@$(BIN)/python -P -m harness.demo

# Types are checked beside the tests, whose processes often wait for one another.
test: lint
	@$(MAKE) --no-print-directory -j 2 types unit

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: setup
	$(BIN)/mypy

# Bytecode is kept whatever the surroundings say: hundreds of processes are started, each of which would compile anew.
unit: export PYTHONDONTWRITEBYTECODE :=
unit: setup
	$(BIN)/python -m pytest -n 3 --dist worksteal --cov --cov-report=term

# Other people's servers, clients and proxies, for tests/test_peers.py and `make bench`; kept until their pins change.
peers: setup
	@$(BIN)/python -m tests.peers

# Real clients and coding agents through the proxy, the agents against a stand-in for their models; fetches about 1 GB once.
test-clients: setup
	@$(BIN)/python -m tests.peers clients || true
	$(BIN)/python -m pytest -n 2 -rs -o python_files='check_*.py' tests/clients

# Agents of real frameworks, made once in venvs of their own, and the two mail agents, limits and Ctrl-C over each target.
test-targets: setup
	@$(BIN)/python -m tests.peers frameworks || true
	$(BIN)/python -m pytest -n 2 -rs -o python_files='check_*.py' tests/frameworks

# Measured, never asserted. `make bench WRITE=docs/performance.md` writes the page too; ONLY=stdio measures that alone.
bench: setup
	@$(BIN)/python -m tests.bench $(if $(ONLY),--only $(ONLY)) $(if $(WRITE),--write $(WRITE))
	@$(if $(ONLY),true,$(BIN)/python -m tests.bench.http $(if $(WRITE),--append $(WRITE)))

soak: setup
	@$(BIN)/python -m tests.bench.soak
	@$(BIN)/python -m tests.bench.http_soak

# A stream over HTTP in which nothing comes for 90 s.
silence: setup
	@$(BIN)/python -m tests.bench.http_soak silence

# A hundred trials, four at a time, each with a marker of its own that no other trial may have.
isolation: setup
	@$(BIN)/python -m tests.harness.isolation

# Runs that are killed at random records and gone on with; `make resume KILLS=20 SEED=7`.
resume: setup
	@$(BIN)/python -m tests.harness.killing $(or $(KILLS),10) $(or $(SEED),1)

# Mutated messages against the wire core, and over HTTP on real sockets; `make fuzz SECONDS=600 SEED=7`, each so long.
fuzz: setup
	@$(BIN)/python -m tests.proxy.fuzz $(or $(SECONDS),60) $(or $(SEED),1)
	@$(BIN)/python -m tests.proxy.fuzz_http $(or $(SECONDS),60) $(or $(SEED),1)

# Every property with examples that `make test`, whose own are always the same, has never seen; `make properties SEED=7`.
properties: setup
	$(BIN)/python -m pytest -n 2 -m hypothesis --hypothesis-profile=anew $(if $(SEED),--hypothesis-seed=$(SEED))

# The official suite, direct against through the proxy; `make conformance WRITE=docs/conformance.md` writes the page too.
# ROLE=server or ROLE=client is one half; the client's takes minutes, since its scenarios run one at a time.
conformance: setup
	@$(BIN)/python -m tests.conformance $(if $(WRITE),--write $(WRITE)) $(if $(ROLE),--role $(ROLE))

# Written anew from the code; a test holds them against it.
schemas: setup
	@mkdir -p docs/schemas
	@for name in agent policy report scenario trace; do $(BIN)/wiretrap schema $$name > docs/schemas/$$name.json || exit 1; done

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis htmlcov
