# The usual verbs. `make` prints them.
staticcheck = honnef.co/go/tools/cmd/staticcheck@v0.8.2

help: ## list the verbs
	@grep -E '^[a-z]+:.*##' Makefile | sed 's/:.*##/\t/'

build: ## build logtool into ./bin
	go build -o bin/ ./cmd/logtool

install: ## install logtool
	go install ./cmd/logtool

short: ## short tests: something of every promise that needs no private server
	go test -short ./...

test: ## all tests
	go test ./...

long: ## all tests in their long form, ten seconds of fuzzing for each target, real programs if PROGRAMS names them
	CONVLOG_TEST_LONG=1 CONVLOG_TEST_POSTGRES=required go test -timeout 60m ./...
	testdata/resume_matrix.py
	.ci/fuzz each 10s

race: ## tests of concurrent packages with the race detector
	go test -race -gcflags=modernc.org/...=-race=false -short ./eventlog/... ./store/... ./fork ./interop ./interop/internal/sessions ./projection

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

ci: ## what CI runs
	.ci/run

all: ## what CI runs, and the stages that passed before on the same files
	CI_ALL=1 .ci/run

release: ## archives of a tag in ./dist: make release VERSION=v0.1.0
	.ci/release $(VERSION)

.PHONY: help build install short test long race lint cross fuzz bench picture ci all release
