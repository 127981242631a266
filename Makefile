# Everything a person or a machine does to this repository. `make` explains itself.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Tools are pinned here and stay out of go.mod.
LINT := go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

# The packages that decide, what keeps and plays them: no servers, seconds.
CORE  := ./quota ./gang ./queue ./admission
CHEAP := $(CORE) ./admission/journal ./cmd ./simulations

FUZZTIME ?= 30s

.PHONY: help
help: ## say what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## five gangs on a real control plane on this machine, with simulated nodes
	@mkdir -p bin
	go build -o bin/demo ./simulations/demo/cmd/demo
	@bin/demo

.PHONY: demo-down
demo-down: ## stop the demo and remove its data
	@mkdir -p bin
	go build -o bin/demo ./simulations/demo/cmd/demo
	@bin/demo down

.PHONY: sandbox
sandbox: ## build that control plane (once; about ten minutes)
	cd simulations/sandbox && go run ./cmd/sandbox build >/dev/null

.PHONY: build
build: ## bin/sluice, bin/sluice-controller and bin/sluice-agent
	go build -o bin/ ./cmd/sluice ./cmd/sluice-controller ./cmd/sluice-agent

# The cheapest first: what is wrong in the core is not worth starting a server for.
.PHONY: test
test: ## everything that tests the product, the demo on a real control plane included
	go test $(CHEAP)
	@$(MAKE) --no-print-directory sandbox
	go build ./...
	go test -p 1 -timeout 20m $$(go list ./... | grep -vE '/simulations/(e2e|chaos)$$')
	SLUICE_E2E=1 go test -v -count 1 -p 1 -timeout 40m ./simulations/e2e ./simulations/chaos
	cd simulations/sandbox && go test -p 1 -timeout 20m ./...
	cd simulations/bench && SLUICE_E2E=1 go test -count 1 -timeout 20m ./...

.PHONY: quick
quick: ## the tests that need no server
	go test $(CHEAP)

.PHONY: race
race: ## the same under the race detector (needs a C compiler)
	CGO_ENABLED=1 go test -race $(CHEAP)

.PHONY: check
check: vet lint generated ## what has to hold before a change lands, beside the tests

.PHONY: vet
vet: ## go vet, all modules
	go vet ./...
	cd simulations/sandbox && go vet ./...
	cd simulations/bench && go vet ./...

.PHONY: lint
lint: ## golangci-lint, all modules (the first time it builds itself, in minutes)
	$(LINT) run ./...
	cd simulations/sandbox && $(LINT) run --config ../../.golangci.yml ./...
	cd simulations/bench && $(LINT) run --config ../../.golangci.yml ./...

.PHONY: generated
generated: ## fail if a generated file is out of date
	deploy/generate.sh --check

.PHONY: generate
generate: ## write the generated files
	deploy/generate.sh

.PHONY: fmt
fmt: ## format everything
	$(LINT) fmt ./...
	cd simulations/sandbox && $(LINT) fmt --config ../../.golangci.yml ./...
	cd simulations/bench && $(LINT) fmt --config ../../.golangci.yml ./...

.PHONY: scenarios
scenarios: build ## run every scenario file, or make scenarios FILES="a.yaml b.yaml"
	bin/sluice simulate $(or $(FILES),$(wildcard simulations/testdata/scenarios/*.yaml))

# The tests with expectations in text files: those that read them with datadriven,
# and those with a flag of their own.
REWRITABLE = $$(grep -rlE 'cockroachdb/datadriven|"rewrite"' --include='*_test.go' --exclude-dir=sandbox . | xargs -n 1 dirname | sort -u)

.PHONY: rewrite
rewrite: ## write the expectations in testdata anew; then read the diff as a review
	go test $(REWRITABLE) -rewrite

.PHONY: fuzz
fuzz: ## every fuzz test for FUZZTIME (30s)
	@grep -rnoE '^func Fuzz[A-Za-z0-9]+' --include='*_test.go' --exclude-dir=sandbox . | sed -E 's/^(.*)\/[^/]+:[0-9]+:func (.*)$$/\1 \2/' | sort | \
	while read -r package name; do \
		echo "$$package $$name"; \
		go test "$$package" -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x; \
	done

.PHONY: bench
bench: ## the benchmarks of the core, and by which power of each size they grow [BENCH=Cycle]
	@mkdir -p bin
	go build -o bin/growth ./simulations/tables/cmd/growth
	go test -run '^$$' -bench '$(or $(BENCH),.)' -benchmem $(CORE) | bin/growth

# Results are kept in out/tables, so that a run that was broken off goes on.
.PHONY: tables
tables: ## replay published studies on the engine, and write expected, got, difference (hours on a busy machine)
	@mkdir -p bin
	go build -o bin/tables ./simulations/tables/cmd/tables
	bin/tables --page simulations/RESULTS.md

.PHONY: tables-quick
tables-quick: ## a tenth of it; without the traces, the examples that need none
	@mkdir -p bin
	go test -count 1 ./simulations/tables
	go build -o bin/tables ./simulations/tables/cmd/tables
	bin/tables --quick --out out/tables-quick

SHAPE ?= baseline
NTH ?= 1
.PHONY: bench-api
bench-api: ## sluice beside Kueue on an API server each: SHAPE=baseline|large|backlog, NTH=10 for a tenth
	cd simulations/bench && go build -o ../../bin/bench ./cmd/bench
	bin/bench --shape $(SHAPE) --nth $(NTH)

# A seed repeats which faults and gangs there are, not the instants of each.
FOR ?= 10m
.PHONY: chaos
chaos: ## break everything on a real control plane for FOR=10m [SEED=N], and watch the promises
	@mkdir -p bin
	go build -o bin/chaos ./simulations/chaos/cmd/chaos
	bin/chaos --for $(FOR) $(if $(SEED),--seed $(SEED))

.PHONY: clean
clean: ## remove what was built here (not the control plane in the cache)
	rm -rf bin out
