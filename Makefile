# The commands of this repository. `make` alone lists them.

# Commands that the tests and the benchmarks call, as scripts/need takes them.
TEST_NEEDS  := node:nodejs npm python3:python3-venv redis-server caddy
BENCH_NEEDS := wrk valgrind taskset:util-linux redis-server

# Tests in which something is killed, cut off, wiped or set wrong, and how often `make chaos` runs them.
FAULTS := fleet:: durability:: keys::kill keys::fleet keys::lost_leases keys::outage recovery:: usage::fleet usage::kill usage::restart
ROUNDS ?= 3

# nextest runs test binaries side by side; without it cargo's own runner does.
ifneq ($(shell cargo nextest --version 2>/dev/null),)
    RUN_TESTS := cargo nextest run --workspace
else
    RUN_TESTS := cargo test --workspace --lib --bins --tests
endif

.DEFAULT_GOAL := help
.PHONY: help run build test lint fmt tidy bench bench-exact bench-gate soak chaos clean

help: ## list these commands
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:[^#]*## /\t/' | expand -t 14

run: ## build and serve in the foreground; ARGS="--http-listen 127.0.0.1:8080" adds flags
	@cargo run --release --package tollkeeper --bin tollkeeper -- serve $(ARGS)

build: ## build the release binary
	@cargo build --release --package tollkeeper

test: ## everything that must pass before a change goes in
	@scripts/need $(TEST_NEEDS)
	@ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || scripts/need postgres:postgresql
	@scripts/timed "format" cargo fmt --all --check
	@scripts/timed "lints" cargo clippy --workspace --all-targets -- -D warnings
	@scripts/timed "python for tests" scripts/test-python
	@scripts/timed "tests" $(RUN_TESTS)
	@scripts/timed "sdks" env TOLLKEEPER_BIN="$${CARGO_TARGET_DIR:-target}/debug/tollkeeper" sdk/run
	@scripts/timed "schedules" cargo test --package tollkeeper-decide --features shuttle
	@scripts/timed "doc tests" cargo test --workspace --doc

lint: ## lints, and licences and bans where cargo-deny is installed
	@cargo clippy --workspace --all-targets -- -D warnings
	@if cargo deny --version >/dev/null 2>&1; then cargo deny check bans licenses; fi

fmt: ## format the sources
	@cargo fmt --all

tidy: ## the rules of the tree: file headers, named paths, direction of imports
	@cargo test --package tollkeeper-testkit --test tidy

bench: ## side-by-side figures, printed as tables
	@scripts/need $(BENCH_NEEDS)
	@cargo run --release --package tollkeeper-bench

bench-exact: ## exactness of a fleet over the whole grid, and with kills and losses; takes up to 40 minutes
	@scripts/need redis-server
	@cargo run --release --package tollkeeper-bench -- exact grid
	@cargo run --release --package tollkeeper-bench -- exact trouble

soak: ## what takes longer than a test may: ten thousand fleets from seeds, minutes of trouble with Redis, ten without PostgreSQL
	@scripts/need $(TEST_NEEDS)
	@FLEET_SEEDS=10000 cargo test --package tollkeeper-decide --test it fleet
	@cargo test --package tollkeeper --test it system:: -- --ignored
	@cargo test --package tollkeeper --test it usage:: -- --ignored --nocapture --test-threads 1

chaos: ## kills, cuts, wipes, failovers and jumping clocks on real processes, many more than a test has time for; ROUNDS=3
	@scripts/need $(TEST_NEEDS)
	@ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || scripts/need postgres:postgresql
	@for round in $$(seq $(ROUNDS)); do \
	    scripts/timed "round $$round of $(ROUNDS)" \
	        env FLEET_KILLS=40 FLEET_WIPES=25 cargo test --package tollkeeper --test it -- $(FAULTS) || exit 1; \
	done

bench-gate: ## fail when the hot path takes 5 % more instructions than recorded
	@scripts/need $(BENCH_NEEDS)
	@cargo run --release --package tollkeeper-bench -- gate

# The data folder stays: it holds keys that nobody can make again.
clean: ## remove what cargo built
	@cargo clean
