# Every target sets up what it needs; `make help` lists them. One profile (release) and one target folder for all of
# them: compiling wasmtime takes minutes, so it is done once.

# How the guests are compiled: auto, rustup or debian (see scripts/setup.sh).
GUEST ?= $(or $(HOMEOSTAT_GUEST_TOOLCHAIN),auto)
# What `make run` brings up.
FLEET ?= examples/web.toml

# How long each target of make fuzz runs, and what makes its cases: own, or libfuzzer, which is guided by coverage.
FUZZ_SECONDS ?= 600
FUZZ_ENGINE ?= own

# What make semver compares with.
BASELINE ?= HEAD~1

CARGO ?= cargo
# The flag without a meaning sets these pages apart from those that were made without a list of what is public.
DOC = RUSTDOC=$(CURDIR)/scripts/rustdoc.sh RUSTDOCFLAGS="-D warnings --cfg surface" $(CARGO) doc --release --locked --workspace --no-deps

# `auto` is the build's own default. Setting it would differ from not setting it, and build again.
ifeq ($(GUEST),auto)
unexport HOMEOSTAT_GUEST_TOOLCHAIN
else
export HOMEOSTAT_GUEST_TOOLCHAIN := $(GUEST)
endif

.DEFAULT_GOAL := help
.PHONY: help setup browser languages build run deciders test check fuzz bench public-api semver fmt

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo "  GUEST=auto|rustup|debian   how the guests are compiled"
	@echo "  FLEET=file.toml            what make run brings up"

setup: ## a C linker and a way to compile the guests, where they are missing
	@scripts/setup.sh $(GUEST)

build: setup ## the program
	$(CARGO) build --release --locked -p homeostat

run: build ## bring examples/web.toml up; ^C takes it down
	$(CARGO) run --release --locked --quiet -p homeostat -- up $(FLEET)

# Without --locked: a decider of your own in examples/deciders is a new package of the workspace.
deciders: setup ## the deciders of examples/deciders, as components in target/deciders
	@$(CARGO) run --release --quiet -p example-deciders -- $(or $(CARGO_TARGET_DIR),target)/deciders

browser: ## the browser that the tests of the dashboard drive, where it is missing
	@scripts/browser.sh

languages: ## the compilers that the tests of other languages run, where they are missing
	@scripts/languages.sh

test: setup browser languages ## all tests
	$(CARGO) test --release --locked --no-fail-fast
	$(CARGO) test --release --locked --no-fail-fast -p traces --features otlp

check: setup ## format, lints, documentation, licences
	$(CARGO) fmt --all --check
	$(CARGO) fmt --all --manifest-path fuzz/Cargo.toml --check
	$(CARGO) fetch --locked --quiet --manifest-path fuzz/Cargo.toml
	$(CARGO) clippy --release --locked --workspace --all-targets -- -D warnings
	$(CARGO) clippy --release --locked -p traces --features otlp --all-targets -- -D warnings
	$(DOC)
	$(CARGO) test --release --locked --test licences --test tidy --test surface -- --include-ignored
	@if command -v cargo-deny >/dev/null 2>&1; then \
		$(CARGO) deny --all-features check licenses bans sources && \
		{ $(CARGO) deny --all-features check advisories || \
		  $(CARGO) deny --offline --all-features check advisories; }; \
	else \
		echo "cargo-deny is not installed: tests/tests/licences.rs has checked licences and sources, advisories are unchecked"; \
	fi
	@if command -v cargo-semver-checks >/dev/null 2>&1; then \
		scripts/semver.sh $(BASELINE); \
	else \
		echo "cargo-semver-checks is not installed: docs/public-api.txt has been compared, types and traits were not"; \
	fi

# Where the seed differs, so do the cases. libfuzzer compiles all packages anew, into a folder of their own.
fuzz: setup ## components, snapshots and plans, ten minutes each; FUZZ_SECONDS=number, FUZZ_ENGINE=own|libfuzzer
ifeq ($(FUZZ_ENGINE),libfuzzer)
	scripts/fuzz.sh run $(FUZZ_SECONDS)
else
	HOMEOSTAT_FUZZ_SECONDS=$(FUZZ_SECONDS) HOMEOSTAT_FUZZ_SEED=$$(date +%s) \
		$(CARGO) test --release --locked --test fuzz -- --nocapture --test-threads=1
endif

bench: setup ## what a decision costs, the component against the native call
	$(CARGO) bench --locked -p benches

# A list that takes something away needs another version in Cargo.toml first (0.x: the minor).
public-api: setup ## write docs/public-api.txt, the list of what other programs can use
	$(DOC)
	BLESS=1 $(CARGO) test --release --locked --test surface -- --include-ignored

semver: setup ## what other programs can use, against an earlier commit; BASELINE=revision
	scripts/semver.sh $(BASELINE)

fmt: ## format the sources
	$(CARGO) fmt --all
	$(CARGO) fmt --all --manifest-path fuzz/Cargo.toml
