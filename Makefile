# The usual verbs. `make` prints them.
staticcheck = honnef.co/go/tools/cmd/staticcheck@v0.8.2

help: ## list the verbs
	@grep -E '^[a-z]+:.*##' Makefile | sed 's/:.*##/\t/'

build: ## build logtool into ./bin
	go build -o bin/ ./cmd/logtool

install: ## install logtool
	go install ./cmd/logtool

short: ## short tests: something of every promise
	go test -short ./...

test: ## all tests
	go test ./...

race: ## tests of concurrent packages with the race detector
	go test -race -short ./eventlog/... ./store/... ./fork ./interop ./projection

lint: ## format, vet, staticcheck, go.mod
	@test -z "$$(gofmt -l .)" || { gofmt -l .; exit 1; }
	go vet ./...
	go run $(staticcheck) ./...
	go mod tidy -diff

cross: ## build and vet all platforms, and test those that run here
	.ci/platforms all

fuzz: ## every fuzz target for ten seconds
	.ci/fuzz each 10s

bench: ## the bars: ratios to the raw operations
	go run ./internal/bench

picture: ## draw the rooms in docs/ARCHITECTURE.md
	go test ./internal/archtest -run Picture -update

ci: ## everything that CI runs
	.ci/run

.PHONY: help build install short test race lint cross fuzz bench picture ci
