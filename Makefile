# awty's commands; `make help` lists them. What they do is in scripts/.
#
# PG_CONFIG=/path/to/pg_config chooses the PostgreSQL, otherwise it is Debian's version 15, or what is there.
# DESTDIR=/directory lets install and uninstall work below it.

SHELL := /bin/bash
.DEFAULT_GOAL := all
.PHONY: all setup install uninstall installcheck dist help gateway gateway-chaos neighbours gateway-speed gateway-rest deadlines-speed soak skew page-speed clients demo demo-stop test matrix abi-test campaign failover bench bench-full bench-compare pages reference fmt lint freeze clean

ifdef PG_CONFIG
export PG_CONFIG
endif
ifdef OLD
export OLD
endif
ifdef DESTDIR
export DESTDIR
endif

all: ## build the library; what that takes has to be there (make setup)
	@scripts/setup --check build
	@scripts/build

setup: ## install what is missing for that (apt, as root), or say how to
	@scripts/setup build

install: ## copy what is built into PostgreSQL (sudo make install); builds nothing
	@scripts/install

uninstall: ## remove those files
	@scripts/install --remove

installcheck: ## the SQL regression tests on the server that runs (PGHOST, PGPORT, PGUSER)
	@scripts/installcheck

dist: ## the last commit as awty-VERSION.zip, for PGXN
	@scripts/dist

help: ## list these commands
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' Makefile | while IFS='|' read -r name what; do printf '  make %-14s %s\n' "$$name" "$$what"; done
	@echo
	@echo "  PG_CONFIG=/path/to/pg_config   another PostgreSQL (15 to 18) than Debian's 15"
	@echo "  make test ONLY=core,regress    some of the tests only (names: scripts/test --list)"

demo: ## a shop with late orders and a gateway with endpoints that misbehave, about two minutes
	@scripts/demo

gateway: ## build the program awty-gateway, target/release/awty-gateway (docs/gateway.md)
	@cargo build --release --locked -p awty-gateway

gateway-chaos: ## kill gateways, server and network, and look whether a call was lost or doubled (KILLS=100 SEED=1; root for networks)
	@scripts/gateway-chaos "$(or $(KILLS),100)" "$(or $(SEED),1)"

neighbours: ## what twenty hostile tenants take from another one, beside a quiet twin (MINUTES=5); docs/neighbours.md
	@scripts/neighbours "$(or $(MINUTES),5)"

soak: ## an hour of 100,000 schedules once a minute (SCHEDULES=100000 MINUTES=60); docs/soak.md
	@scripts/calls soak --schedules "$(or $(SCHEDULES),100000)" --minutes "$(or $(MINUTES),60)"

skew: ## are others delayed by endpoints that hang? twin runs, eight minutes (ROUNDS=3); docs/gateway-skew.md
	@scripts/calls skew --rounds "$(or $(ROUNDS),3)"

page-speed: ## each view with ten million calls, and people who reload the page: twin runs, twenty minutes, 8 GB (PART=page or page-twin, ROUNDS=3); docs/gateway-page.md
	@set -e; for part in $(or $(PART),page page-twin); do \
		if [ $$part = page ]; then scripts/calls page; else scripts/calls page-twin --rounds "$(or $(ROUNDS),3)"; fi; done

gateway-speed: ## the gateway beside pg_net, pg-boss and its ceilings, a quarter of an hour (CALLS=20000 ROUNDS=3); docs/gateway-performance.md
	@scripts/calls speed --schedules "$(or $(CALLS),20000)" --rounds "$(or $(ROUNDS),3)"

gateway-rest: ## memory of calls that hang, statements of idle slots, lists of a million schedules, ten minutes; docs/gateway-rest.md
	@scripts/calls rest

deadlines-speed: ## what calendars and stops cost, five minutes; docs/deadlines.md
	@scripts/bench deadlines

clients: ## drivers and frameworks of other languages against awty, five minutes (CLIENTS="psycopg node"); docs/clients.md
	@CLIENTS="$(CLIENTS)" scripts/clients

demo-stop: ## stop and remove the demo's cluster and gateway
	@scripts/demo stop

test: ## every test there is
	@scripts/test $(ONLY)

matrix: ## the same on PostgreSQL 15, 17 and 18, one after the other (MATRIX="17 18", ONLY=regress; root, mmdebstrap)
	@scripts/matrix "$(MATRIX)" "$(ONLY)"

abi-test: ## build against the oldest minor release that apt has, test on the installed one (OLD=/path/to/pg_config, ONLY=regress)
	@scripts/abi-test $(ONLY)

campaign: ## break what awty runs on and look for broken promises (MINUTES=3 SEED=1, FAULTS="KillWorker Promote")
	@scripts/campaign "$(or $(MINUTES),3)" "$(or $(SEED),1)" $(FAULTS)

failover: ## Patroni's switchovers and failovers, restores and a move, and what they lose (MINUTES=60 SEED=1, EVENTS="Switchover Pitr"); docs/failover.md
	@scripts/failover "$(or $(MINUTES),60)" "$(or $(SEED),1)" $(EVENTS)

bench: ## awty beside what one would pick instead, half an hour; docs/performance.md (ONLY=ceiling,set SCALE=0.01 for a try)
	@scripts/bench --scale "$(or $(SCALE),1)" --only "$(ONLY)"

bench-full: ## the same with the large sizes, more than an hour
	@scripts/bench --full --scale "$(or $(SCALE),1)" --only "$(ONLY)"

bench-compare: ## CPU time beside that of another commit, ten minutes; fails when a figure is worse by more than its noise (BASE=main PAIRS=5); docs/performance.md
	@scripts/bench-compare "$(BASE)" "$(or $(PAIRS),5)"

pages: ## write the tables of measurements anew, from docs/results
	@cargo run -q -p awty-testkit --bin bench -- pages

reference: ## write docs/reference.md from the catalog and the source
	@scripts/reference

fmt: ## format the Rust code
	@cargo fmt --all

lint: ## formatting, clippy, commit subjects, dependencies, SQL security, width and links of Markdown
	@scripts/test lint

freeze: ## at a release: keep the install script as it is from then on (sql/released)
	@scripts/freeze

clean: ## remove what was built for this PostgreSQL
	@scripts/build --clean
