# Start with make demo and make test.

SHELL := /bin/bash
BIN   := $(CURDIR)/bin
GO    ?= go

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -X weir.dev/weir/internal/app/process.Version=$(VERSION)

# One set of flags for programs, tests and linters, and for kubelab: each dependency is compiled once, and once more
# for the race detector. Linking without debug information is faster.
export GOFLAGS     := $(strip $(GOFLAGS) -trimpath -gcflags=all=-dwarf=false)
export CGO_ENABLED ?= 0

# Pinned build tools, installed in bin/ and not listed in go.mod.
GOLANGCI_LINT_VERSION  := v2.15.0
CONTROLLER_GEN_VERSION := v0.23.0
KO_VERSION             := v0.19.1
COSIGN_VERSION         := v3.1.3
CRANE_VERSION          := v0.21.7

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build weir, weir-provisioner and weirlab into bin/
	@mkdir -p $(BIN)
	@$(GO) build -ldflags '-s -w $(LDFLAGS)' -o $(BIN)/ ./cmd/...

# Takes the one of KUBEBUILDER_ASSETS if build.sh finds that it has the same sources.
.PHONY: kubelab
kubelab: ## Build the Kubernetes control plane for demo and tests (once, about 3 minutes)
	@if [ ! -e $(BIN)/kubelab ] && [ -x "$$KUBEBUILDER_ASSETS/kubelab" ]; then mkdir -p $(BIN); \
	  ln -sf "$$KUBEBUILDER_ASSETS/kubelab" "$$KUBEBUILDER_ASSETS/.kubelab.sha256" $(BIN)/; fi
	@tools/kubelab/build.sh

.PHONY: kubelab-oldest
kubelab-oldest: ## Build the oldest supported Kubernetes into bin/oldest (once, about 4 minutes)
	@tools/kubelab/build.sh oldest

.PHONY: demo
demo: kubelab build ## A real kube-apiserver, the ARM emulator and Weir (FULL=1: all five acts; STAY=1 keeps it)
	@$(BIN)/weirlab demo $(if $(FULL),--full) $(if $(STAY),--stay)

.PHONY: remote
remote: kubelab build ## A second cluster behind a bad network, and Weir that provisions it, until Ctrl-C
	@$(BIN)/weirlab remote

.PHONY: simulate
simulate: build ## Random schedules in virtual time (SEEDS=1000 SEED=1; FOR=10m instead of SEEDS)
	@$(BIN)/weirlab simulate --seed $(or $(SEED),1) $(if $(FOR),--for $(FOR),--seeds $(or $(SEEDS),1000))

.PHONY: mutants
mutants: ## Change the code in 60 places of each package, and see which test or seed tells (SAMPLE=60 SEED=1)
	@$(GO) run ./tools/mutants -sample $(or $(SAMPLE),60) -seed $(or $(SEED),1) -write

.PHONY: busyday
busyday: ## A day in virtual time with others at the same load balancer; prints lag and writes (a minute or two)
	@$(GO) test ./lab/scenario -run '^TestBusyDay$$' -v -busy-day 24h

# Linters and quick tests first. Then four groups run in parallel: tests of the built programs, of what ships
# beside them, tests that mostly wait, and tests that compute, at a lower priority. The first three run one package
# at a time, because each starts a control plane.
.PHONY: test
test: check generated pure kubelab build ## Everything that CI runs
	@begun=$$(date +%s); $(MAKE) --no-print-directory -k -j4 group-built group-shipped group-waiting group-computing && \
	  echo "weir: all green, $$(( $$(date +%s) - begun )) s after linters and quick tests"

# In a group, a failure does not end what follows. Each group reports its time.
group = begun=$$(date +%s); failed=; for part in $(1); do $(MAKE) --no-print-directory $$part || failed=1; done; \
  echo "weir: $(1): $$(( $$(date +%s) - begun )) s"; [ -z "$$failed" ]
.PHONY: group-built group-shipped group-waiting group-computing
group-built:
	@+$(call group,unit-built)
group-shipped:
	@+$(call group,conformance chart kubelab-tests alerts page)
group-waiting:
	@+$(call group,unit-waiting)
group-computing:
	@+$(call group,unit-long unit-race)

# The base of "what changed": the merge base with main, or HEAD.
BASE ?= $(shell git merge-base HEAD main 2>/dev/null || echo HEAD)

# Packages in which every test needs a control plane: make quick only vets them. Other tests often wait,
# so four packages run in parallel on two cores.
CLUSTER := ./test/e2e ./test/takeover ./test/apifault
# Packages that connect to Kubernetes and to users. Their test binaries link client-go (2 s of CPU each),
# so make quick runs them only if they changed, and vets them otherwise.
JOINTS  := ./internal/controllers/... ./internal/app/... ./cmd/... ./lab/apiserver ./tools/mutants
JOINT   := ^(api|config|cmd|internal/controllers|internal/app|lab/apiserver|tools/mutants)/

.PHONY: quick
quick: $(BIN)/golangci-lint-$(GOLANGCI_LINT_VERSION) ## In a minute, without kube-apiserver: all packages, scripts, 200 seeds, lint of what changed (BASE=main)
	@begun=$$(date +%s); \
	  changed=$$( { git diff --name-only --diff-filter=d $(BASE) -- '*.go'; git ls-files -o --exclude-standard -- '*.go'; } | sort -u); \
	  if [ -n "$$changed" ]; then unformatted=$$(gofmt -l $$changed); fi; \
	  if [ -n "$$unformatted" ]; then echo "gofmt these:"; echo "$$unformatted"; exit 1; fi; \
	  compiled="$(CLUSTER)"; \
	  if git diff --name-only $(BASE) | cat - <(git ls-files -o --exclude-standard) | grep -qE '$(JOINT)'; then \
	    echo "weir: tests, but those that need a control plane or take long"; \
	  else \
	    compiled="$(CLUSTER) $(JOINTS)"; echo "weir: tests, but those that need a control plane, take long, or are of $(JOINTS), where nothing has changed"; \
	  fi; \
	  set -o pipefail; $(GO) test -short -p 4 -vet=off $$($(GO) list ./... | grep -vxFf <($(GO) list $$compiled)) | sed -e '/no test files/d' -e '/(cached)/d' || exit 1; \
	  $(GO) vet $$compiled || exit 1; \
	  folders=$$(for f in $$changed; do dirname "./$$f"; done | grep -v -e /testdata -e '^./tools/kubelab' -e '^./tools/alerts' -e '^./tools/chart' -e '^./tools/page' -e '^./test/conformance' | sort -u); \
	  if [ -n "$$folders" ]; then echo "weir: lint of" $$folders; $(BIN)/golangci-lint-$(GOLANGCI_LINT_VERSION) run --new-from-rev=$(BASE) $$folders || exit 1; fi; \
	  echo "weir: quick took $$(( $$(date +%s) - begun )) s"

.PHONY: check
check: ## gofmt and golangci-lint, which includes go vet
	@unformatted=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); \
	  if [ -n "$$unformatted" ]; then echo "gofmt these:"; echo "$$unformatted"; exit 1; fi
	@$(MAKE) --no-print-directory $(BIN)/golangci-lint-$(GOLANGCI_LINT_VERSION)
	@echo "weir: golangci-lint"
	@$(BIN)/golangci-lint-$(GOLANGCI_LINT_VERSION) run ./...

.PHONY: generate
generate: $(BIN)/controller-gen-$(CONTROLLER_GEN_VERSION) ## Regenerate deep copies and CRDs from api/, and files of charts/weir from config/
	@$< object paths=./api/...
	@$< crd paths=./api/... output:crd:dir=config/crd
	@$(GO) run ./tools/chartfiles

.PHONY: generated
generated: $(BIN)/controller-gen-$(CONTROLLER_GEN_VERSION)
	@echo "weir: generated files"
	@tmp=$$(mktemp -d) && trap 'rm -rf "$$tmp"' EXIT && \
	  $< object paths=./api/... output:object:dir=$$tmp && \
	  $< crd paths=./api/... output:crd:dir=$$tmp && \
	  diff -u api/v1alpha1/zz_generated.deepcopy.go $$tmp/zz_generated.deepcopy.go && \
	  for crd in backendpools partners provisioningpolicies provisions; do diff -u config/crd/weir.dev_$$crd.yaml $$tmp/weir.dev_$$crd.yaml || exit 1; done || \
	  { echo "weir: generated files are behind api/: run make generate"; exit 1; }

# BUILT packages run without the race detector: they start the built program, or a child process with a memory
# limit.
BUILT   := ./test/e2e ./test/takeover ./internal/provisioning/charts
# Packages whose tests mostly wait.
WAITING := ./internal/controllers/... ./lab/demo ./lab/process ./test/...
# Packages that start no goroutine, nor do their tests: the race detector would find nothing in them.
PURE    := ./internal ./internal/armerror ./internal/azure/codec ./internal/humanize ./internal/k8s/metadata ./internal/k8s/store ./internal/lb ./internal/lb/behavior ./internal/loadbalancer/conflict ./internal/loadbalancer/plan ./internal/loadbalancer/securitygroup ./internal/nic ./internal/offline ./internal/pool/diff ./internal/pool/membership ./internal/pool/schedule ./internal/provisioning/policy ./internal/service ./internal/skumigration/phase ./lab/armemu/schema ./tools/chartfiles ./tools/dashboard ./tools/house ./tools/plugin
# Packages with tests that -short skips or cuts: these tests run again without -short and without the race
# detector, which would slow them down tenfold. The longest packages are first.
LONG    := ./lab/cluster ./lab/simulate ./internal/provisioning ./lab/scenario ./internal/loadbalancer ./lab/lag ./lab/payload ./internal/azure ./lab/probe ./lab/fleet
# internal/provisioning mostly waits, so three run in parallel. go vet is a linter of make check. Tests allocate much
# and keep little: with the default GOGC, a fifth of their time is garbage collection. Built programs keep it: their
# memory is measured.
GOTEST  := $(GO) test -vet=off -timeout 40m
TEST    := env GOGC=400 $(GOTEST)

# Prints the tests of packages that call testing.Short, as a pattern for -run.
longtests = awk '/^func Test/ { name = $$2; sub(/[(].*/, "", name) } /testing[.]Short[(][)]/ { print name }' $(patsubst %,%/*_test.go,$(LONG)) | sort -u | paste -sd '|' -

.PHONY: unit unit-built unit-waiting unit-long unit-race kubelab-tests
unit: kubelab build pure
	@$(MAKE) --no-print-directory -k -j3 unit-built unit-waiting group-computing

.PHONY: pure
pure: ## Tests of rules of the code and of packages that decide, a minute
	@echo "weir: tests of packages that only decide, and of the rules of the code"
	@$(TEST) $(PURE)

unit-built:
	@echo "weir: tests of the built programs"
	@KUBEBUILDER_ASSETS=$(BIN) $(GOTEST) -p 1 $(BUILT)

unit-waiting:
	@echo "weir: tests that wait, with the race detector"
	@KUBEBUILDER_ASSETS=$(BIN) CGO_ENABLED=1 $(TEST) -race -p 1 $$($(GO) list $(WAITING) | grep -vxFf <($(GO) list $(BUILT)))

unit-long:
	@echo "weir: tests that take long"
	@nice $(TEST) -p 3 -run "^($$($(longtests)))$$" $(LONG)

unit-race:
	@echo "weir: all other tests, with the race detector"
	@CGO_ENABLED=1 nice $(TEST) -race -short $$($(GO) list ./... | grep -vxFf <($(GO) list $(BUILT) $(WAITING) $(PURE)))

kubelab-tests:
	@echo "weir: tests of kubelab, built like it so that Kubernetes is not compiled twice"
	@tools/kubelab/build.sh test

# Random search beyond the budgets of make test, which CONTRIBUTING.md lists.
RAPID = $$(grep -rl --include='*_test.go' pgregory.net/rapid internal lab | xargs -n 1 dirname | sort -u | sed 's|^|./|')
.PHONY: nightly
nightly: ## Random search beyond the budgets of make test: hours (SEEDS=20000)
	@$(TEST) -timeout 12h -run '^TestSeeds$$|^TestPipelinedSeeds$$' ./lab/simulate -args -seeds $(or $(SEEDS),20000)
	@$(TEST) -timeout 12h -run '^TestSeeds|^TestFromBasicToStandardAndBack$$' ./lab/cluster -args -seeds 600 -kills 0
	@$(TEST) -timeout 12h -short $(RAPID) -args -rapid.checks=2000 -rapid.nofailfile
	@$(TEST) -timeout 12h -run '^TestAttemptsTakeNoMemory$$' ./internal/provisioning -args -fail-for 8760h
	@$(TEST) -timeout 12h -run '^TestBusyDay$$' ./lab/scenario -args -busy-day 24h

# The policy that adds readiness gates needs Kubernetes 1.36.
.PHONY: oldest
oldest: kubelab-oldest build ## The built programs and the chart against the oldest supported Kubernetes, 15 minutes
	@KUBEBUILDER_ASSETS=$(BIN)/oldest $(GOTEST) -p 1 -skip '^TestReadinessGates' ./test/e2e ./test/takeover ./test/apifault
	@cd tools/chart && KUBEBUILDER_ASSETS=$(BIN)/oldest $(TEST) -count=1 .

# Separate modules, so that Weir depends on neither Prometheus nor Helm. They test files outside the
# module, whose changes do not invalidate Go's test cache: -count=1.
.PHONY: shipped
shipped: kubelab build alerts chart page ## Tests of what ships beside the program: alerts and the dashboard, the chart, the page

.PHONY: alerts chart
alerts:
	@echo "weir: tests of alerts and the dashboard, with Prometheus' own engine"
	@cd tools/alerts && $(GO) test -count=1 .
chart:
	@echo "weir: tests of the chart, with Helm's library"
	@cd tools/chart && KUBEBUILDER_ASSETS=$(BIN) $(GO) test -count=1 ./...

.PHONY: conformance
conformance: kubelab build ## The conformance suite of Gateway API, on a real kube-apiserver and the emulated Azure (REWRITE=1 writes the report)
	@echo "weir: the conformance suite of Gateway API"
	@cd test/conformance && KUBEBUILDER_ASSETS=$(BIN) $(TEST) -count=1 . $(if $(REWRITE),-args -rewrite)

# Installs Chromium on Debian; elsewhere install it yourself.
.PHONY: chromium
chromium:
	@command -v chromium >/dev/null || { echo "weir: installing Chromium"; apt-get -qq update && apt-get -qq install -y --no-install-recommends chromium fonts-dejavu-core >/dev/null; }

.PHONY: page
page: chromium ## Tests of weir page in a real Chromium, half a minute
	@echo "weir: tests of the page, in a real Chromium"
	@cd tools/page && $(GO) test -count=1 .

.PHONY: page-shots
page-shots: chromium ## The same, with pictures of every sheet in bin/page-shots/
	@cd tools/page && $(GO) test -count=1 . -args -shots $(BIN)/page-shots

.PHONY: dashboard
dashboard: ## Write config/grafana/weir.json from tools/dashboard
	@$(GO) run ./tools/dashboard

PLATFORMS := linux/amd64 linux/arm64
# Programs that run in a cluster, with one image each.
PROGRAMS := weir weir-provisioner

.PHONY: release
release: ## All of a release into bin/release/: programs, images by digest, SBOMs, chart, plugin (VERSION=v1.2.3 IMAGE=registry/weir FROM=https://…)
	@rm -rf $(BIN)/release
	@$(MAKE) --no-print-directory release-check plugin
	@$(MAKE) --no-print-directory image IMAGE=
	@cd tools/chart && $(GO) run ./pack -chart ../../charts/weir -dir $(BIN)/release -version '$(VERSION)' -image '$(IMAGE)'

.PHONY: release-check
release-check: ## Compile what a release has, for each platform, with its digest and its modules, into bin/release/
	@for platform in $(PLATFORMS); do \
	  for program in $(PROGRAMS); do out=$(BIN)/release/$$program-$${platform%/*}-$${platform#*/}; \
	  CGO_ENABLED=0 GOOS=$${platform%/*} GOARCH=$${platform#*/} $(GO) build -trimpath -gcflags=all=-dwarf=false -ldflags '-s -w $(LDFLAGS)' -o $$out ./cmd/$$program || exit 1; \
	  $(GO) version -m $$out >$$out.modules || exit 1; \
	  done; \
	done; cd $(BIN)/release && sha256sum $(foreach p,$(PROGRAMS),$(p)-linux-amd64 $(p)-linux-arm64)

PLUGINS := $(PLATFORMS) darwin/amd64 darwin/arm64 windows/amd64

.PHONY: plugin
plugin: ## Build kubectl weir for each platform into bin/release/, with archives and krew's manifest (VERSION=v1.2.3 FROM=https://…)
	@for platform in $(PLUGINS); do os=$${platform%/*}; suffix=; [ $$os = windows ] && suffix=.exe; \
	  CGO_ENABLED=0 GOOS=$$os GOARCH=$${platform#*/} $(GO) build -trimpath -gcflags=all=-dwarf=false -ldflags '-s -w $(LDFLAGS)' \
	    -o $(BIN)/release/kubectl-weir-$$os-$${platform#*/}$$suffix ./cmd/weir || exit 1; \
	done
	@$(GO) run ./tools/plugin -dir $(BIN)/release -version $(VERSION) -from $(FROM)

.PHONY: image
image: $(BIN)/ko-$(KO_VERSION) ## Build the images for all platforms without a daemon, with SBOMs (IMAGE=registry/weir pushes them and registry/weir-provisioner)
	@for program in $(PROGRAMS); do \
	  VERSION=$(VERSION) KO_DOCKER_REPO=$(or $(IMAGE),weir.invalid/weir)$${program#weir} $< build ./cmd/$$program --bare --sbom=spdx --platform=$(shell echo $(PLATFORMS) | tr ' ' ,) \
	    --sbom-dir=$(BIN)/release/sbom --tags=$(VERSION) --image-refs=$(BIN)/release/image-refs-$$program $(if $(IMAGE),,--push=false --oci-layout-path=$(BIN)/release/image/$$program) || exit 1; \
	done

# Targets for the job that publishes a release. They run no code of the repository and no tools but these two.
.PHONY: publish-tools
publish-tools: $(BIN)/crane-$(CRANE_VERSION) $(BIN)/cosign-$(COSIGN_VERSION)

.PHONY: release-digest
release-digest:
	@set -o pipefail; cd $(BIN) && find release -type f | LC_ALL=C sort | xargs sha256sum | sha256sum | cut -d' ' -f1

.PHONY: registry-login
registry-login: $(BIN)/crane-$(CRANE_VERSION)
	@printf %s "$$TOKEN" | $< auth login $(firstword $(subst /, ,$(IMAGE))) --username "$$ACTOR" --password-stdin

.PHONY: publish
publish: $(BIN)/crane-$(CRANE_VERSION) ## Push the images of make image, as make image left them in bin/release (IMAGE=registry/weir VERSION=v1.2.3)
	@for program in $(PROGRAMS); do \
	  $< push $(BIN)/release/image/$$program $(IMAGE)$${program#weir}:$(VERSION) --image-refs $(BIN)/release/image-refs-$$program || exit 1; \
	done

.PHONY: sign
sign: publish-tools
	@crane=$(BIN)/crane-$(CRANE_VERSION); cosign=$(BIN)/cosign-$(COSIGN_VERSION); \
	for program in $(PROGRAMS); do \
	  ref=$$(head -n 1 $(BIN)/release/image-refs-$$program) && \
	  $$cosign sign --yes --recursive "$$ref" && \
	  $$cosign attest --yes --type spdxjson --predicate $(BIN)/release/sbom/$$program-index.spdx.json "$$ref" || exit 1; \
	  for platform in $(PLATFORMS); do \
	    of=$$($$crane digest --full-ref --platform "$$platform" "$$ref") && \
	    $$cosign attest --yes --type spdxjson --predicate "$(BIN)/release/sbom/$$program-$${platform//\//-}.spdx.json" "$$of" || exit 1; \
	  done; \
	done

.PHONY: bench
bench: kubelab build ## Lag beside schedules that know the future; benchmarks, allocations reported; what 100 pools cost
	@$(GO) test ./lab/lag -run '^TestPage$$' -v -args -write
	@$(GO) test -run '^$$' -bench . -benchmem ./internal/... ./lab/...
	@KUBEBUILDER_ASSETS=$(BIN) $(GO) test -run '^$$' -bench . -benchtime 1x ./test/e2e
	@$(BIN)/weirlab scale --services 100 --nodes 100 --load-balancers 10 --idle 10s 2>/dev/null

.PHONY: fuzz
fuzz: ## Fuzz every parser for 30 s each
	@for pkg in $$($(GO) list ./internal/... ./lab/...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
	    echo "weir: $$pkg $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime 30s -fuzzminimizetime 10x $$pkg || exit 1; \
	  done; done

# The file name of a tool contains its version, so a version change triggers a build.
$(BIN)/golangci-lint-$(GOLANGCI_LINT_VERSION):
	@echo "weir: building golangci-lint $(GOLANGCI_LINT_VERSION), once; about 3 minutes on 2 cores"
	@GOBIN=$(BIN)/.install GOFLAGS= $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
	@mv $(BIN)/.install/golangci-lint $@

$(BIN)/controller-gen-$(CONTROLLER_GEN_VERSION):
	@echo "weir: building controller-gen $(CONTROLLER_GEN_VERSION)"
	@GOBIN=$(BIN)/.install GOFLAGS= $(GO) install sigs.k8s.io/controller-tools/cmd/controller-gen@$(CONTROLLER_GEN_VERSION)
	@mv $(BIN)/.install/controller-gen $@

$(BIN)/ko-$(KO_VERSION):
	@echo "weir: building ko $(KO_VERSION), once"
	@GOBIN=$(BIN)/.install GOFLAGS= $(GO) install github.com/google/ko@$(KO_VERSION)
	@mv $(BIN)/.install/ko $@

$(BIN)/crane-$(CRANE_VERSION):
	@echo "weir: building crane $(CRANE_VERSION), once"
	@GOBIN=$(BIN)/.install GOFLAGS= $(GO) install github.com/google/go-containerregistry/cmd/crane@$(CRANE_VERSION)
	@mv $(BIN)/.install/crane $@

$(BIN)/cosign-$(COSIGN_VERSION):
	@echo "weir: building cosign $(COSIGN_VERSION), once"
	@GOBIN=$(BIN)/.install GOFLAGS= $(GO) install github.com/sigstore/cosign/v3/cmd/cosign@$(COSIGN_VERSION)
	@mv $(BIN)/.install/cosign $@

.PHONY: clean
clean: ## Remove bin/
	@rm -rf $(BIN)
