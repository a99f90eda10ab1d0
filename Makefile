# awty's commands; `make` lists them. What they do is in scripts/.
#
# PG_CONFIG=/path/to/pg_config chooses the PostgreSQL, otherwise it is Debian's version 15, or what is there.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help build install demo demo-stop test matrix campaign bench bench-full fmt lint clean

ifdef PG_CONFIG
export PG_CONFIG
endif

help: ## list these commands
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' Makefile | while IFS='|' read -r name what; do printf '  make %-11s %s\n' "$$name" "$$what"; done
	@echo
	@echo "  PG_CONFIG=/path/to/pg_config   another PostgreSQL (15 to 18) than Debian's 15"
	@echo "  make test ONLY=core,regress    some of the tests only (names: scripts/test --list)"

build: ## install what is missing, build the extension
	@scripts/setup build
	@scripts/build

install: build ## build, and install into PostgreSQL (asks for sudo by name if it must)
	@scripts/install

demo: ## a shop with late orders on a throwaway cluster, about a minute
	@scripts/demo

demo-stop: ## stop and remove the demo's cluster
	@scripts/demo stop

test: ## every test there is
	@scripts/test $(ONLY)

matrix: ## the same on PostgreSQL 15, 17 and 18, one after the other (MATRIX="17 18", ONLY=regress; root, mmdebstrap)
	@scripts/matrix "$(MATRIX)" "$(ONLY)"

campaign: ## break what awty runs on and look for broken promises (MINUTES=3 SEED=1, FAULTS="KillWorker Promote")
	@scripts/campaign "$(or $(MINUTES),3)" "$(or $(SEED),1)" $(FAULTS)

bench: ## awty beside what one would pick instead, ten minutes; docs/performance.md (ONLY=ceiling,set SCALE=0.01 for a try)
	@scripts/bench --scale "$(or $(SCALE),1)" --only "$(ONLY)"

bench-full: ## the same with the large sizes, more than an hour
	@scripts/bench --full --scale "$(or $(SCALE),1)" --only "$(ONLY)"

fmt: ## format the Rust code
	@cargo fmt --all

lint: ## formatting, clippy, dependencies, SQL security
	@scripts/test lint

clean: ## remove what was built, the staged PostgreSQL and the demo
	@scripts/demo stop
	@rm -rf /tmp/awty-stage-$$(id -u)-*
	@cargo clean
