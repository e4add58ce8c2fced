# The commands of the project; `make` lists them. Every step prints one line,
# and a step that fails says its name.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

# What a release calls itself: the newest tag, or devel and the commit.
VERSION ?= $(shell git describe --tags --dirty 2>/dev/null || echo "devel-$$(git describe --always --dirty 2>/dev/null || echo unknown)")
ARGS ?=
APIARGS ?=
LIBARGS ?=
CTLARGS ?=
PLANEARGS ?=
FUZZTIME ?= 10s
BENCH ?= .
BENCHTIME ?= 5x
KILLS ?= 1000
ROUNDS ?= 50

.PHONY: help run build test check race fuzz bench chaos fmt clean
.PHONY: deps check-fmt vet staticcheck arch generated tidy unit

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

run: build ## Build, then run `evenkeel serve` (ARGS="--log-level debug")
	@bin/evenkeel serve $(ARGS)

build: ## Build bin/evenkeel
	@echo "==> build bin/evenkeel $(VERSION)"
	@CGO_ENABLED=0 go build -trimpath -o bin/ \
		-ldflags "-X github.com/even-keel/evenkeel/cli.buildVersion=$(VERSION)" ./cmd/evenkeel

test: deps check-fmt vet staticcheck arch unit ## Install what tests need, then lint and run all tests

check: deps check-fmt vet staticcheck arch generated tidy unit ## All of test; generated files and go.mod are current

race: deps ## Run all tests of all modules with the race detector
	@CGO_ENABLED=1 scripts/each code "test -race" go test -race -timeout 30m ./...

fuzz: ## Run every fuzz target of the tree (FUZZTIME=10s each)
	@FUZZTIME=$(FUZZTIME) scripts/fuzz

bench: ## Run the benchmarks against the peers (BENCH=regexp)
	@echo "==> bench"
	@cd bench && go test -run '^$$' -bench '$(BENCH)' -benchmem -benchtime $(BENCHTIME) -timeout 60m $(ARGS) ./...
	@echo "==> bench: the API servers"
	@cd bench && go run ./apiserver -run '$(BENCH)' $(APIARGS)
	@echo "==> bench: the library"
	@cd bench && go run ./library -run '$(BENCH)' $(LIBARGS)
	@echo "==> bench: controllers"
	@cd bench && go run ./controllers -run '$(BENCH)' $(CTLARGS)
	@echo "==> bench: the control plane"
	@cd bench && go run ./controlplane -run '$(BENCH)' $(PLANEARGS)

chaos: ## Kill and check storage at length (KILLS=1000, ROUNDS=50)
	@EVENKEEL_KILLS=$(KILLS) EVENKEEL_ROUNDS=$(ROUNDS) scripts/chaos

fmt: ## Format the code
	@gofmt -w .

clean: ## Remove what the build made
	@rm -rf bin

# The steps of test and check.

deps:
	@echo "==> prerequisites"
	@scripts/deps

check-fmt:
	@echo "==> format"
	@unformatted=$$(gofmt -l .); \
	if [ -n "$$unformatted" ]; then \
		echo "not formatted, run make fmt:"; echo "$$unformatted"; exit 1; \
	fi

vet:
	@scripts/each code vet go vet ./...

staticcheck:
	@scripts/each code staticcheck go tool -modfile="$(CURDIR)/tools/go.mod" staticcheck ./...

arch:
	@echo "==> architecture"
	@go test ./internal/arch

generated:
	@echo "==> generated files are current"
	@scripts/generated

tidy:
	@scripts/each all "go.mod is tidy" go mod tidy -diff

unit:
	@scripts/test
