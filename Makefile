# `make` alone lists what there is to do.

GO          ?= go
BIN         ?= bin
FUZZ_TIME   ?= 10s
COMPOSE     ?= docker compose
VERSION     ?=

# Where Kafka's jars are kept; the tests look there too.
UPSTRAND_KAFKA_JARS ?= $(HOME)/.cache/upstrand/kafka
test-real test-full bench-control compose-test: export UPSTRAND_KAFKA_JARS := $(UPSTRAND_KAFKA_JARS)

# The race detector needs a C compiler. Without one the tests run all the same, without it.
CC_FOUND := $(shell command -v $(or $(CC),cc) || command -v gcc)
RACE     := $(if $(CC_FOUND),-race,)
# The compiler learns from cmd/upstrand/default.pgo, which takes it a minute more; tests don't wait for that.
test test-real conformance: export GOFLAGS := $(GOFLAGS) -pgo=off
# Two packages at a time: several of them start whole systems, and a starved machine fails limits of time.
PARALLEL ?= -p 2

LDFLAGS = -s -w $(if $(VERSION),-X github.com/upstrand/upstrand/cmd/internal/roles.release=$(VERSION))

# One set of flags, so that `make run` after `make build` compiles nothing anew.
BUILD = CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build upstrand and upstrand-dev into bin/, static
	$(BUILD) ./cmd/upstrand ./cmd/upstrand-dev

.PHONY: run
run: ## everything in one process, with an embedded broker, an embedded registry and demo services (ARGS="--data DIR" …)
	@echo "building $(BIN)/upstrand-dev (the first time takes a minute)"
	@$(BUILD) ./cmd/upstrand-dev
	@exec $(BIN)/upstrand-dev $(ARGS)

.PHONY: test
test: ## all tests that need Go alone
	@$(if $(RACE),true,echo "no C compiler: the race detector stays off")
	$(GO) test $(RACE) $(PARALLEL) -timeout 15m $$($(GO) list ./... | grep -v /deploy/e2e)
	$(GO) test $(RACE) -count=1 -timeout 15m ./deploy/e2e # it builds the programs itself, which the test cache can't see

.PHONY: kafka-jars
kafka-jars: ## fetch Kafka by Maven, once (needs Java 17 and Maven)
	@test -e $(UPSTRAND_KAFKA_JARS)/.complete || { \
	mvn -q -B -f deploy/rig/kafka/pom.xml dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(UPSTRAND_KAFKA_JARS) && \
	touch $(UPSTRAND_KAFKA_JARS)/.complete; }

.PHONY: test-real
test-real: kafka-jars ## the tests against a real Kafka and a real MariaDB (needs Java 17, Maven, mariadb-server)
	$(GO) run ./deploy/rig/with -- env UPSTRAND_REAL=1 $(GO) test -count=1 -p 1 -timeout 25m \
		$$($(GO) list ./deploy/... | grep -v /conformance) ./registry/... ./heartbeat/... ./confgen/... ./proxy/... ./cmd/...
	@$(MAKE) --no-print-directory conformance

.PHONY: conformance
conformance: ## replay what a real nginx was recorded to do, over real sockets (Linux; about 2 minutes; CONFORMANCE_ONLY=^08/ …)
	@out=$$(mktemp); UPSTRAND_REAL=1 $(GO) test -count=1 -v -timeout 25m ./deploy/conformance >$$out 2>&1; code=$$?; \
	grep -v -e '^=== ' -e '--- PASS' -e '--- SKIP' -e '_test.go:[0-9]*: [a-z ]*: the recorded' $$out; rm -f $$out; exit $$code

.PHONY: test-full
test-full: kafka-jars ## the end-to-end tests on real servers, at production times: about 20 minutes
	UPSTRAND_FULL=1 $(GO) test -count=1 -timeout 90m ./deploy/e2e/...

.PHONY: compare-nginx
compare-nginx: ## a real nginx (1.22 or later) and the proxy on the same configurations: 0 differences (about 5 minutes)
	UPSTRAND_COMPARE=1 $(GO) test -count=1 -v -timeout 30m ./deploy/compare

.PHONY: conformance-http
conformance-http: ## suites of the wire against the built program: strictness, WebSocket, slow clients, chaos, h2spec, gRPC, restarts (about 5 minutes; CHAOS_TIME=60s, ONLY=chaos)
	@GO="$(GO)" CHAOS_TIME="$(CHAOS_TIME)" ONLY="$(ONLY)" UPSTRAND_TEST_SWAPS=1000 deploy/wire/conformance

.PHONY: fuzz-wire
fuzz-wire: ## random and mutated requests to the proxy and to a real nginx: what is forwarded must mean the same (FUZZ_TIME=1h, ARGS="-seed 1 -only 7")
	$(GO) run ./deploy/wire/differ -time $(FUZZ_TIME) $(ARGS)

.PHONY: lint
lint: ## gofmt, go vet, staticcheck
	@bad=$$(gofmt -l . | grep -v '^vendor/'); test -z "$$bad" || { echo "not formatted by gofmt:"; echo "$$bad"; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

.PHONY: fuzz-short
fuzz-short: ## each fuzz target for a moment (FUZZ_TIME=10s)
	@set -e; for f in $$(grep -rl --include='*_test.go' '^func Fuzz' .); do \
		for name in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/p' $$f); do \
			echo "$$name in $$(dirname $$f)"; \
			$(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZ_TIME) -fuzzminimizetime 10x $$(dirname $$f); \
		done; done

.PHONY: bench-control
bench-control: kafka-jars ## measure the control path on a real Kafka and a real MariaDB
	$(GO) run ./deploy/bench/control

.PHONY: bench-proxy
bench-proxy: ## requests per CPU-second of nginx, HAProxy, Caddy, httputil.ReverseProxy and us (Linux; about 8 minutes; ARGS="-rows get -rounds 9" …)
	$(GO) run ./deploy/bench/proxy $(ARGS)

.PHONY: bench-features
bench-features: ## what each feature costs us: access log, header changes, metrics, TLS …
	$(GO) run ./deploy/bench/proxy $(ARGS) features

.PHONY: bench-latency
bench-latency: ## p50, p99 and p99.9 at half of what the slowest serves, beside nginx, HAProxy and the bare backend
	$(GO) run ./deploy/bench/proxy $(ARGS) latency

.PHONY: bench-memory
bench-memory: ## memory with 10,000 idle connections, and with 1,000 upstreams of 10 servers, beside nginx
	$(GO) run ./deploy/bench/proxy $(ARGS) memory

.PHONY: profile-proxy
profile-proxy: ## where our time goes: processor and allocation profiles, system calls per request (ARGS="-rows post" …)
	$(GO) run ./deploy/bench/proxy $(ARGS) profile

.PHONY: train
train: ## write cmd/upstrand/default.pgo anew: the compiler builds us by it, for about a tenth less time in our own code (on a quiet machine, 4 minutes)
	$(GO) run ./deploy/bench/proxy train

.PHONY: bench-balance
bench-balance: ## ns and allocations of a pick and its end, by method and number of peers, for 1 and 2 goroutines (BENCH=least …); of walks of 1, 2 and 5 stops
	$(GO) test -run '^$$' -bench 'Pick/$(BENCH)|Clock' -benchmem -cpu 1,2 -benchtime 200ms ./proxy/balance
	$(GO) test -run '^$$' -bench Walk -benchmem -cpu 1 -benchtime 200ms ./proxy/site

.PHONY: compose-test
compose-test: ## bring docker-compose.yml up with stand-in images, break it, take it down (needs root and Docker)
	deploy/compose-test/run

.PHONY: up
up: ## start docker-compose.yml
	$(COMPOSE) up -d --build --wait

.PHONY: down
down: ## stop docker-compose.yml and remove what it made, data included
	$(COMPOSE) down -v --remove-orphans

.PHONY: clean
clean: ## remove what was built
	rm -rf $(BIN)
