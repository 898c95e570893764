# `make` lists what there is. Everything needs Go; the rest says what it needs.

GO       ?= go
FUZZTIME ?= 30s
SEEDS    ?= 100000
FROM     ?= 1
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT   ?= $(shell git rev-parse HEAD 2>/dev/null)

# The race detector needs a C compiler. Without one the tests still run, and
# say so. RACE=-race insists.
RACE ?= $(if $(shell command -v gcc || command -v clang),-race)

# Folders with a go.mod of their own.
MODULES := examples/settlement contrib/k8s-leaderelection
USED    := api client cmd/fencepost
# Adapters to frameworks of Go, Python and Java, for make adapters.
GO_ADAPTERS := controller-runtime goose gocron valkeyrie
PYTHON_ADAPTERS := tooz celery
JAVA_ADAPTERS := shedlock spring
ADAPTERS := $(GO_ADAPTERS) $(PYTHON_ADAPTERS) $(JAVA_ADAPTERS)
LINTED  := $(USED) $(MODULES) $(GO_ADAPTERS:%=contrib/%) fencekit fencetest fencetest/systems
# The packages of the server's module, and of those that its tests use: a folder would not name these.
OURS    := ./... github.com/fencepost/fencepost/api/... github.com/fencepost/fencepost/client/...

TOOL := $(GO) tool -modfile=$(CURDIR)/tools/go.mod
LINT := $(TOOL) golangci-lint
say   = @printf '\n== %s\n' '$(1)'

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: unit-packages unit-handlers unit-unraced histories-domain histories-simulated
.PHONY: system-examples system-outside system-zookeeper clients-languages clients-contest
.PHONY: help tools run build sbom dashboard web crowd screenshots seed deploy-test test unit histories system lint format generate verify faults mutants bench clients fencekit fencetest fencetest-short generated-clients schemathesis demo simulate explore spec fuzz dist dist-test clean

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The dashboard as make run last built it, and what it is made of; folders, for what is removed, but
# for the one into which the build writes.
BUILT := dashboard/node_modules/.built
BUILT_OF := $(shell find dashboard/src dashboard/public ! -name schema.d.ts ! -path dashboard/src/api) $(wildcard dashboard/*.json dashboard/*.ts dashboard/index.html) openapi/openapi.json

# What is edited while it is built is newer than the mark, which says when that began.
$(BUILT): $(BUILT_OF) $(if $(wildcard dashboard/dist/index.html),,not-built)
	@echo 'Building the dashboard ...'
	@began=$$(mktemp) && $(MAKE) --no-print-directory dashboard && \
	  { test ! -d dashboard/node_modules || touch -r "$$began" $@; } && rm "$$began"

.PHONY: not-built
not-built:

run: $(BUILT) ## Start a development server; prints a token and a curl line (RUNFLAGS="--listen 127.0.0.1:9000")
	@echo 'Building the server (the first time, minutes) ...'
	@$(GO) build -o bin/api ./cmd/api
	@exec bin/api --dev $(RUNFLAGS)

build: dashboard ## Build static binaries into bin/
	@set -e; for program in api fencepost; do (set -x; CGO_ENABLED=0 $(GO) build -C cmd/$$program -trimpath -buildvcs=false \
	  -ldflags '-s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)' -o ../../bin/ .); done

sbom: build ## List the modules in bin/api, and the npm packages in the dashboard, in bin/*.cdx.json (CycloneDX)
	$(GO) run github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0 bin -json -version $(VERSION) -output bin/api.cdx.json bin/api
	cd dashboard && node sbom.js >../bin/dashboard.cdx.json

# The version of a release is its tag, or else the newest of CHANGELOG.md and the commit.
RELEASE ?= $(or $(patsubst v%,%,$(shell git describe --tags --exact-match 2>/dev/null)),$\
$(shell sed -n 's/^## //p;/^## /q' CHANGELOG.md)-g$(shell git rev-parse --short HEAD))
GORELEASER := v2.15.1
TARGETS    ?=

bin/tools/goreleaser-$(GORELEASER):
	GOBIN=$(CURDIR)/bin/tools $(GO) install github.com/goreleaser/goreleaser/v2@$(GORELEASER)
	GOBIN=$(CURDIR)/bin/tools $(GO) install github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0
	mv bin/tools/goreleaser $@

# goreleaser builds single targets without packages alone: a filter of its file does.
dist: dashboard bin/tools/goreleaser-$(GORELEASER) ## Build the files of a release in bin/dist (TARGETS=linux_amd64 for one system; RELEASE=1.2.3)
	@sed -e '$(if $(TARGETS),/^      - [a-z]*_[a-z0-9]*$$/{/$(TARGETS)/!d})' deploy/packages/goreleaser.yaml >bin/goreleaser.yaml
	RELEASE=$(RELEASE) COMMIT=$(COMMIT) SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) \
	  COMMIT_DATE=$$(git log -1 --format=%cI) PATH=$(CURDIR)/bin/tools:$$PATH \
	  bin/tools/goreleaser-$(GORELEASER) release --snapshot --clean --config bin/goreleaser.yaml

dist-test: ## Build the release of linux_amd64 twice, and install it in a clean root (needs root on Debian; minutes)
	deploy/check-packages

# What npm fetched is fetched again when the lock file has changed.
WEB := dashboard/node_modules/.package-lock.json
$(WEB): dashboard/package-lock.json
	@cd dashboard && PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm ci --no-audit --no-fund --silent && touch node_modules/.package-lock.json

# Without npm the server is built as it is, and its page says how to build the dashboard.
dashboard: ## Build the dashboard, which the server embeds (needs node, npm)
	@command -v npm >/dev/null || { echo 'no npm: the dashboard is not built'; exit 0; }; \
	  $(MAKE) --no-print-directory $(WEB) && cd dashboard && npm run --silent build

# Playwright drives the system's Chromium: a browser of its own would be another download.
web crowd screenshots chromium: export FENCEPOST_CHROMIUM ?= /usr/bin/chromium

# Debian's package, if root may install it.
.PHONY: chromium
chromium:
	@test -x $(FENCEPOST_CHROMIUM) || { test "$$(id -u)" = 0 && apt-get update -qq && apt-get install -y -qq chromium; } || \
	  { echo 'there is no Chromium: install it, or name one in FENCEPOST_CHROMIUM'; exit 1; }

web: dashboard chromium ## Check the dashboard: its rules, what it computes, and in a browser (needs node, npm, chromium)
	$(call say,the dashboard)
	@$(MAKE) --no-print-directory $(WEB)
	cd dashboard && npm run --silent lint && npm test --silent
	cd dashboard && npm run --silent browser

# With 5 000 locks, and nothing said of time, this is part of web.
crowd: dashboard chromium ## Look at 100 000 locks and 10 000 waiters in a browser, and hold the times against their bars (the machine to itself)
	@$(MAKE) --no-print-directory $(WEB)
	cd dashboard && CROWD=alone LOCKS=100000 WAITERS=10000 npm run --silent browser -- crowd

# A server of its own is filled for MINUTES, so that the heat map has something to show.
MINUTES ?= 12
screenshots: dashboard chromium ## Take the screenshots of the documents again (MINUTES=12 of traffic first; needs node, npm, chromium)
	@$(MAKE) --no-print-directory $(WEB)
	cd dashboard && SCREENSHOTS=$(MINUTES) npm run --silent browser -- screenshots
	@find docs/images -size +250k -exec echo 'over 250 kB: {}' \; | (! grep .)

seed: ## Fill the server of make run with lively traffic until Ctrl-C (SEEDFLAGS="-crowd 40")
	@set -m 2>/dev/null; $(GO) run ./test/seed $(SEEDFLAGS) # Ctrl-C goes to the program, not to make

tools: ## Name the tools that test needs and does not find (PARTS may need fewer)
	@.ci/tools

# One part after the other: next to what computes, clusters miss their deadlines. All parts run.
PARTS := lint verify web unit histories system clients fencekit fencetest-short adapters
test: $(if $(filter file,$(origin PARTS)),tools) ## Check everything that a change needs (sets itself up; PARTS="unit web" for some)
	@failed=; for part in $(PARTS); do $(MAKE) --no-print-directory --keep-going $$part || failed="$$failed $$part"; done; \
	  test -z "$$failed" || { printf '\nfailed:%s\n' "$$failed"; exit 1; }

# These run without the race detector, which makes them five to ten times slower and would
# look at what is not ours (etcd inside the process), at one goroutine, or at what other
# tests do under it with the same code. All others run with it.
UNRACED := ^Test(ConformanceEmbedded|RecordsEmbedded|FullStore|FullAtItsQuota|LargeValues|$\
Growth|Memory|EndsTakeLittleMemory|FiguresOfManyLocks|FiguresOfOtherTenants|UnknownWordsAreOther|$\
Backlog|DeadReceiver|DeadReceiverIsNoDelay|GrantsOfAnother|$\
MassGrant(OutlivesItsOwner|HoldsUpNoOther|TooLate)?|Missed(IsSentOnRequest|Meanwhile|SoonByAnotherClock))$$

# lint runs vet.
TEST := $(GO) test -count=1 -vet=off

# Two packages run at once. The stores' wait for clusters, and miss deadlines beside each
# other: they come first and last, and what needs no servers runs beside them. That of the
# handlers has many replicas on one store, and comes alone.
unit: unit-packages unit-handlers unit-unraced ## Test the packages, the stores on real servers included

unit-packages:
	$(call say,packages$(if $(RACE),, - WITHOUT the race detector: there is no C compiler))
	$(TEST) $(RACE) -timeout 15m -skip '$(UNRACED)' ./store/etcd \
	  $$($(GO) list $(OURS) | grep -v -e /test/ -e '/lock$$' -e /lock/ -e /store/etcd -e /store/zookeeper -e '/handlers$$' -e '/client$$') ./store/zookeeper
	$(GO) -C cmd/fencepost test -count=1 -vet=off $(RACE) -timeout 5m ./...

unit-handlers:
	$(TEST) $(RACE) -parallel 8 -timeout 15m ./handlers

unit-unraced:
	$(TEST) -timeout 10m -run '$(UNRACED)' ./store/etcd ./store/zookeeper ./service/... ./telemetry ./webhook/outbox

# The first four have no goroutines; the detector makes them five times slower.
histories: histories-domain histories-simulated ## Test what only computes: the domain, its specification, the seeded bugs, 10 300 histories

histories-domain:
	$(call say,the domain, its specification and its simulation)
	$(TEST) -timeout 15m ./lock/... ./test/architecture ./test/mutants ./test/spec

histories-simulated:
	SIMULATE_SEEDS=10000 $(TEST) -timeout 30m ./test/simulation
	$(if $(RACE),SIMULATE_SEEDS=300 $(TEST) $(RACE) -timeout 30m -run '^TestHistories$$' ./test/simulation)

# Tests of handlers that ask no store, or only whether one is there: what they see of
# ZooKeeper they have seen of etcd.
STORELESS := ^Test(Admin|Bad|Bearer|Charsets|Codes|Connection|Content|Docs|Encoded|FirstObjection|GoneIsLogged|GoodBearers|Head|$\
Health|Internal|Journal|ListsAre|LongCycle|Methods|Metrics|Names|Never|NoRoom|Nowhere|Numbers|OpenAPI|Patterns|$\
Query|Refusal|RequestID|RetryAfter|Scopes|Scrapes|StoreUnavailable|Text|TooLarge|Unfinished)|IsBounded$$

# What contrib needs takes minutes to build under the race detector, and has one goroutine.
# One package after another: these start clusters. What waits for leases and elections in
# one waits together. The second store has no detector: it looked at that code on the first.
# Without it the handlers' tests compute for a quarter of their time: eight at once wait together.
TERRAFORM := $(shell command -v terraform)
system: system-examples system-outside system-zookeeper ## Test the examples, and the built server from outside, with short fault runs

system-examples:
	$(call say,examples)
	@set -e; for m in $(MODULES); do \
	  race='$(RACE)'; case $$m in contrib/*) race=;; esac; \
	  (set -x; $(GO) -C $$m test $$race -count=1 -timeout 5m ./...); done
	JOBS=40 RUNS=2 examples/batch/demo

system-outside:
	$(call say,from outside)
	@$(if $(TERRAFORM),,echo 'no terraform: make deploy-test applies with it')
	$(TEST) $(RACE) -timeout 15m -p 1 -skip '^Test(Stores$(if $(TERRAFORM),,|Terraform))' $$($(GO) list ./test/... | grep -v -e /architecture -e /mutants -e /simulation -e /contest -e '/client$$')

system-zookeeper:
	$(call say,HTTP and faults on ZooKeeper)
	STORE=zookeeper $(TEST) -parallel 8 -timeout 5m -skip '$(STORELESS)' ./handlers
	STORE=zookeeper $(TEST) -timeout 10m -run 'F2|F5LostAcquire|F5Late|Quorum|Modes|Outage' ./test/faults

lint: ## Check the rules of .golangci.yml (the first time, a minute to build the linter)
	$(call say,lint)
	$(LINT) run ./...
	@set -e; for m in $(LINTED); do (set -x; cd $$m && $(LINT) run --config $(CURDIR)/.golangci.yml ./...); done

format: ## Format the Go code as lint wants it
	$(LINT) fmt

generate: ## Write the OpenAPI document and the pages of the API, errors and settings from the code
	$(GO) generate ./openapi
	UPDATE=1 $(GO) test -count=1 -run TestSettingsPage ./cmd/api

# Only fencekit, another module, calls these.
OF_FENCEKIT := ^test/rig/((sql|server)\.go:|program\.go:.* open$$)

verify: ## Fail if a generated file, go.mod or a function nobody calls is out of step with the code
	$(call say,generated files)
	@set -e; before=$$(mktemp -d); trap 'rm -rf "$$before"' EXIT; cp -R openapi docs/reference/api.md docs/reference/errors.md "$$before"; \
	  $(MAKE) --no-print-directory generate; \
	  diff -r "$$before/openapi" openapi && diff "$$before/api.md" docs/reference/api.md && \
	  diff "$$before/errors.md" docs/reference/errors.md || \
	  { echo 'generated files were out of date; they are new now: commit them'; exit 1; }
	@set -e; for m in . $(LINTED); do (set -x; $(GO) -C $$m mod tidy -diff); done
	@unused=$$({ $(TOOL) deadcode -test -filter=fencepost/fencepost $(OURS); cd cmd/fencepost && $(TOOL) deadcode -test ./...; } | grep -v -E '$(OF_FENCEKIT)'); test -z "$$unused" || { echo "$$unused"; echo 'nothing calls these'; exit 1; }
	deploy/helm/render
	@if command -v terraform >/dev/null; then deploy/terraform/check; \
	  else echo 'no terraform: neither the form of its files is checked nor what its module gives the chart'; fi
	$(call say,known vulnerabilities)
	@out=$$($(TOOL) govulncheck ./... 2>&1 && cd cmd/fencepost && $(TOOL) govulncheck ./... 2>&1) && echo "$$out" || case "$$out" in \
	  *'fetching vulnerabilities'*) echo 'not checked: their database cannot be reached';; *) echo "$$out"; exit 1;; esac

deploy-test: ## Check what is under deploy/ and the image's steps (needs terraform, systemd, npm, root for the image; the first time, it builds Helm and Compose)
	deploy/check-files
	deploy/terraform/check --plan
	$(TEST) -run '^TestTerraform' ./test/commands
	cd deploy/helm && $(GO) test -count=1 ./...
	deploy/check-image

faults: ## Run all faults at full length (about an hour; STORE=zookeeper; OLDER=path of an older server)
	FAULTS=full $(GO) test -count=1 -timeout 90m -v ./test/faults/...

mutants: ## Seed known bugs into a copy, one at a time: a test must catch each (MUTANTFLAGS="-run lock-")
	@$(GO) run ./test/mutants $(MUTANTFLAGS)

bench: ## Measure against other locks and print the table (BENCHFLAGS=...; needs redis-server 7, java, mvn)
	$(GO) run ./test/bench $(BENCHFLAGS)

clients: clients-languages clients-contest ## Build the client of each language, test it as its users get it, and have all contend (needs python3, node, npm, java, mvn, cargo)

clients-languages:
	@RACE='$(RACE)' $(GO) run ./test/languages

clients-contest:
	$(call say,the contest of languages)
	$(TEST) -timeout 20m -v ./test/contest

adapters: ## Run the published tests of each framework on its adapter, at a server, and print what ran
	contrib/table $(ADAPTERS)

.PHONY: adapters $(ADAPTERS:%=contrib-%)
contrib-controller-runtime contrib-goose contrib-valkeyrie:
	$(call say,$(@:contrib-%=contrib/%))
	clients/with-server $(GO) -C $(@:contrib-%=contrib/%) test -count=1 -timeout 3m -v ./...

contrib-gocron:
	$(call say,contrib/gocron)
	clients/with-server contrib/gocron/judge

$(PYTHON_ADAPTERS:%=contrib-%):
	$(call say,$(@:contrib-%=contrib/%))
	$(@:contrib-%=contrib/%)/check

$(JAVA_ADAPTERS:%=contrib-%):
	$(call say,$(@:contrib-%=contrib/%))
	contrib/check-java $(@:contrib-%=%)

# The first time, two of the tests build the servers that Debian does not have, within their timeout.
fencekit: ## Test the check of fences at each resource, on real servers of each (installs Debian's packages, if root)
	$(call say,fences at resources)
	fencekit/servers
	$(GO) build -o bin/fencekit-api ./cmd/api
	FENCEKIT_API=$(CURDIR)/bin/fencekit-api $(GO) -C fencekit test -count=1 -p 2 -timeout 15m ./...
	$(TEST) -run '^TestStores' ./test/commands

SYSTEM ?=
.PHONY: bin/fencetest
bin/fencetest:
	@$(GO) build -C fencetest -o ../bin/fencetest .

fencetest: bin/fencetest ## Judge locks, ours and others: a pause, a dead server, a lost answer (SYSTEM=redsync for one; 25 minutes; installs what it needs, if root)
	bin/fencetest -home fencetest -system '$(SYSTEM)' -json bin/fencetest.json -histories bin/fencetest-histories

# All of these wait most of the time, and so run at once.
SHORT := fencepost-etcd redsync flock
fencetest-short: bin/fencetest ## Test the fence test with locks that have one fault each, and judge three locks
	$(call say,the fence test)
	@set --; for system in $(SHORT); do \
	  bin/fencetest -home fencetest -strict -system $$system >bin/fencetest-$$system.log 2>&1 & set -- $$@ $$!; done; \
	  $(GO) -C fencetest test -count=1 -vet=off $(RACE) -parallel 20 -timeout 5m ./...; failed=$$?; \
	  for pid; do wait $$pid || failed=1; done; cat $(SHORT:%=bin/fencetest-%.log); exit $$failed

generated-clients: ## Generate clients with five generators, compile them and have them use a server (needs node, npm, python3)
	test/clients/run

schemathesis: ## Check a server against its description with schemathesis (needs python3, npm)
	test/clients/run schemathesis

EXAMPLE ?= settlement

demo: $(BUILT) ## Show what a fence prevents, with workers in three languages; in a terminal, its dashboard stays (needs curl, python3, node, npm; STORE=zookeeper); EXAMPLE=batch waits for callbacks
	@$(if $(filter zookeeper,$(STORE)),$(GO) run ./test/withstore zookeeper) examples/$(EXAMPLE)/demo

simulate: ## Play SEEDS histories of replicas on a faulty store in virtual time, on all processors (SEEDS=1000000 FROM=1)
	SIMULATE_SEEDS=$(SEEDS) SIMULATE_FROM=$(FROM) $(GO) test -count=1 -timeout 24h -run '^TestHistories$$' -v ./test/simulation

DEVIATIONS ?= 2

explore: ## Play every order of small histories, with at most DEVIATIONS deviations from the ordinary one (DEVIATIONS=2)
	@EXPLORE_DEVIATIONS=$(DEVIATIONS) $(GO) test -count=1 -timeout 24h -run '^TestExplore$$' -v ./test/simulation

# Bugs in the code that the model alone has to refuse.
REFUSED := lock-(two-exclusive|semaphore-over-limit|reader-passes-writer|set-holds-in-part|permits-not-freed|superseded-holder|pool-holds-more-than-it-wants)|service-(grant-ahead-of-an-older-view|times-out-what-holds)|engine-(settled-while-it-may-come|shut-out-in-vain|key-taken-back|silence-is-refusal|fresh-entry-written-twice)

spec: ## Check the large cases of the specification too, and that it refuses seeded bugs in the code (minutes)
	$(GO) test -count=1 -timeout 60m -v ./test/spec -whole
	SIMULATE_JUDGE=alone SIMULATE_SEEDS=1000 $(GO) run ./test/mutants -in ./test/simulation -test '^TestHistories$$' -run '^($(REFUSED))$$'

fuzz: ## Fuzz every fuzz target for FUZZTIME (30s; STORE=zookeeper)
	@set -e; for file in $$(grep -rl --include='*_test.go' --exclude-dir=examples '^func Fuzz' .); do \
	  for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/p' $$file); do \
	    (set -x; $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$(dirname $$file)); done; done

clean: ## Remove what was built; data folders stay
	rm -rf bin dashboard/node_modules dashboard/dist/assets dashboard/dist/index.html examples/.venv examples/node_modules
	git clean -fdXq clients fencetest
