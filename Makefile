# All paths are relative, so that the project may lie in a folder with spaces in its name.
# PYTHON=... names the interpreter to build on (make hands it on); ARGS=... goes to the program that a target starts.

.PHONY: help console test check bench bench-check torture soak screenshots peer-dagger peer-codex peer-hermes peer-aion peer-bamboo clean run-env dev-env

help:
	@echo 'make console      set up, and start the console with its demo fleet'
	@echo 'make test         set up, check, and run every test'
	@echo 'make check        style, types and import contracts'
	@echo 'make bench        measure everything, against baselines, and write the table of the README; takes half an hour'
	@echo 'make bench-check  measure it again, and fail where something is more than 30 % worse than the table'
	@echo 'make torture      cut, kill and break what has to lose nothing, for a long time; twenty minutes'
	@echo 'make soak         the console behind a connection that breaks, for half an hour: is its memory flat?'
	@echo 'make screenshots  write the screens as SVG and PNG into screenshots/'
	@echo 'make peer-dagger  install the official Dagger SDKs for the live tests, outside of this folder'
	@echo 'make peer-codex   install the Codex app-server for the live tests, outside of this folder'
	@echo 'make peer-aion    build the aion server for the live tests, outside of this folder; it takes half an hour'
	@echo 'make peer-bamboo  build a bamboo server for the live tests, outside of this folder; it takes half an hour'
	@echo 'make peer-hermes  install the Hermes agent for the live tests, outside of this folder'
	@echo 'make clean        remove the environment and all caches'

console: run-env
	@.venv/bin/watchfloor demo $(ARGS)

test: check
	.venv/bin/python -m pytest -n auto --dist loadgroup $(ARGS)

check: dev-env
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/python -m mypy
	.venv/bin/lint-imports --no-logo --no-cache

bench: run-env
	.venv/bin/python -m benchmarks $(ARGS)

bench-check: run-env
	.venv/bin/python -m benchmarks --check $(ARGS)

torture: dev-env
	WATCHFLOOR_TORTURE=1 .venv/bin/python -m pytest -s -o faulthandler_timeout=0 \
		tests/sockets/test_journal_cuts.py tests/sockets/test_journal_killed.py tests/sockets/test_odd_frames.py \
		tests/unit/test_fuzz.py tests/unit/test_growth.py tests/pty/test_stopped.py tests/pty/test_inbox.py \
		$(ARGS)
	@# Not built for every interpreter: without it that part is left out, and says so.
	-@.venv/bin/python -m pip install --quiet --disable-pip-version-check atheris==3.0.0
	.venv/bin/python -m tests.unit.fuzz_atheris -max_total_time=300 -verbosity=0

soak: dev-env
	.venv/bin/python -m tests.pty.soak $(ARGS)

screenshots: dev-env
	.venv/bin/python -m tests.screens.screenshots $(ARGS)

peer-dagger: dev-env
	@sh tests/peers/dagger_sdk.sh .venv/bin/python

peer-codex:
	@sh tests/peers/codex_install.sh

peer-hermes: dev-env
	@sh tests/peers/hermes_install.sh .venv/bin/python

peer-aion:
	@sh tests/peers/aion_install.sh

peer-bamboo:
	@sh tests/peers/bamboo_install.sh

clean:
	rm -rf .venv .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Each of the two environments has its stamp inside .venv; the script compares it and mostly returns at once.
run-env:
	@sh .ci/setup run

dev-env:
	@sh .ci/setup dev
