# The commands a person needs: make demo, make test. The rest serves these two.

SHELL := /bin/bash
BIN   := $(CURDIR)/bin
GO    ?= go

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -X weir.dev/weir/internal/app/process.Version=$(VERSION)

# The tools of the build, each pinned; they live in bin/, apart from go.mod.
GOLANGCI_LINT_VERSION  := v2.15.0
CONTROLLER_GEN_VERSION := v0.23.0
KO_VERSION             := v0.19.1
COSIGN_VERSION         := v3.1.3
CRANE_VERSION          := v0.21.7

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# These flags are those of kubelab: the standard library is compiled once for both, and debug
# information not at all.
.PHONY: build
build: ## Build weir, weir-provisioner and weirlab into bin/
	@mkdir -p $(BIN)
	@CGO_ENABLED=0 $(GO) build -trimpath -gcflags=all=-dwarf=false -ldflags '-s -w $(LDFLAGS)' -o $(BIN)/ ./cmd/...

.PHONY: kubelab
kubelab: ## Build the Kubernetes control plane for demo and tests (once, about 3 minutes)
	@tools/kubelab/build.sh

.PHONY: demo
demo: kubelab build ## A real kube-apiserver, the ARM emulator and Weir: a story of two minutes (FULL=1: all of it; STAY=1 keeps it)
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

.PHONY: test
test: check generated kubelab build unit shipped ## Everything that CI runs
	@echo "weir: all green"

# What has changed since the branch left main, or since the last commit on main itself.
BASE ?= $(shell git merge-base HEAD main 2>/dev/null || echo HEAD)

# Packages all of whose tests need a control plane: make quick compiles them, and links none. Of the
# others several wait more than they compute, so four go side by side on two cores; vet is part of
# the lint of what changed.
CLUSTER := ./test/e2e ./test/takeover ./test/apifault
# What joins the rooms to Kubernetes and to people. Each of its test programs links all of client-go, two
# seconds of a processor, so make quick runs them where something of theirs has changed, and compiles
# them otherwise.
JOINTS  := ./internal/kube/... ./internal/app/... ./cmd/... ./lab/apiserver ./tools/mutants
JOINT   := ^(api|config|cmd|internal/kube|internal/app|lab/apiserver|tools/mutants)/

.PHONY: quick
quick: $(BIN)/golangci-lint-$(GOLANGCI_LINT_VERSION) ## In a minute, without kube-apiserver: all rooms, scripts, 200 seeds, lint of what changed (BASE=main)
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
	  folders=$$(for f in $$changed; do dirname "./$$f"; done | grep -v -e /testdata -e '^./tools/kubelab' -e '^./tools/alerts' -e '^./tools/chart' -e '^./tools/page' | sort -u); \
	  if [ -n "$$folders" ]; then echo "weir: lint of" $$folders; $(BIN)/golangci-lint-$(GOLANGCI_LINT_VERSION) run --new-from-rev=$(BASE) $$folders || exit 1; fi; \
	  echo "weir: quick took $$(( $$(date +%s) - begun )) s"

.PHONY: check
check: ## gofmt, vet, golangci-lint
	@unformatted=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); \
	  if [ -n "$$unformatted" ]; then echo "gofmt these:"; echo "$$unformatted"; exit 1; fi
	@echo "weir: go vet"
	@$(GO) vet ./...
	@$(MAKE) --no-print-directory $(BIN)/golangci-lint-$(GOLANGCI_LINT_VERSION)
	@echo "weir: golangci-lint"
	@$(BIN)/golangci-lint-$(GOLANGCI_LINT_VERSION) run ./...

.PHONY: generate
generate: $(BIN)/controller-gen-$(CONTROLLER_GEN_VERSION) ## Regenerate deep copies and CRDs from api/
	@$< object paths=./api/...
	@$< crd paths=./api/... output:crd:dir=config/crd

.PHONY: generated
generated: $(BIN)/controller-gen-$(CONTROLLER_GEN_VERSION)
	@echo "weir: generated files"
	@tmp=$$(mktemp -d) && trap 'rm -rf "$$tmp"' EXIT && \
	  $< object paths=./api/... output:object:dir=$$tmp && \
	  $< crd paths=./api/... output:crd:dir=$$tmp && \
	  diff -u api/v1alpha1/zz_generated.deepcopy.go $$tmp/zz_generated.deepcopy.go && \
	  for crd in backendpools partners provisioningpolicies provisions; do diff -u config/crd/weir.dev_$$crd.yaml $$tmp/weir.dev_$$crd.yaml || exit 1; done || \
	  { echo "weir: generated files are behind api/: run make generate"; exit 1; }

# Tests that wait more than they compute: they go beside the others, which leave them the
# processor when they want it, and beside each other. What BUILT runs is the built program, which
# has no race detector in it, or a child with a limit of memory, which bears none.
BUILT   := ./test/e2e ./test/takeover ./internal/kube/charts
WAITING := ./internal/kube/... ./lab/demo ./lab/process ./test/...
# One of these rooms computes all the same, for a thousand Provisions.
COMPUTES := weir.dev/weir/internal/kube/provisions
# Packages with tests that take long, and that -short leaves out. The race detector, which makes
# them ten times as slow, sees the others.
LONG    := ./internal/azure ./internal/balancer ./internal/kube/provisions ./internal/probe ./lab/cluster ./lab/lag ./lab/payload ./lab/scenario ./lab/simulate

.PHONY: unit
unit: kubelab build
	@echo "weir: tests with the race detector, those that wait beside the others; then those that take long, without it"
	@$(GO) list $(BUILT) >$(BIN)/.built; $(GO) list $(WAITING) | grep -vxFf $(BIN)/.built -e $(COMPUTES) >$(BIN)/.waiting; \
	  export KUBEBUILDER_ASSETS=$(BIN); \
	  ( trap - INT; exec $(GO) test -p 2 -timeout 40m $(BUILT) ) & built=$$!; \
	  ( trap - INT; exec $(GO) test -race -p 2 -timeout 40m $$(cat $(BIN)/.waiting) ) & waiting=$$!; \
	  { nice $(GO) test -race -short -timeout 40m $$($(GO) list ./... | grep -vxFf $(BIN)/.built -f $(BIN)/.waiting) && \
	    nice $(GO) test -timeout 40m $(LONG); }; computing=$$?; \
	  wait $$built; built=$$?; wait $$waiting && [ $$built = 0 ] && exit $$computing
	@echo "weir: tests of kubelab, built like it so that Kubernetes is not compiled twice"
	@tools/kubelab/build.sh test

# Modules of their own, so that what ships has nothing of Prometheus and of Helm. Go takes a result of theirs for one of
# today's where only files outside of the module have changed, which is what they test: -count=1.
.PHONY: shipped
shipped: kubelab ## Tests of what ships beside the program: alerts and the dashboard, the chart
	@echo "weir: tests of alerts and the dashboard, with Prometheus' own engine; of the chart, with Helm's library"
	@cd tools/alerts && $(GO) test -count=1 .
	@cd tools/chart && KUBEBUILDER_ASSETS=$(BIN) $(GO) test -count=1 .
	@$(MAKE) --no-print-directory page

# Debian has Chromium as a package; elsewhere one installs it oneself.
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
# The programs that run in a cluster; each has an image of its own.
PROGRAMS := weir weir-provisioner

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
image: $(BIN)/ko-$(KO_VERSION) ## Build the images for all platforms without a daemon, with SBOMs in bin/image-sbom (IMAGE=registry/weir pushes them and registry/weir-provisioner; else bin/image)
	@for program in $(PROGRAMS); do \
	  VERSION=$(VERSION) KO_DOCKER_REPO=$(or $(IMAGE),weir.invalid/weir)$${program#weir} $< build ./cmd/$$program --bare --sbom=spdx --platform=$(shell echo $(PLATFORMS) | tr ' ' ,) \
	    --sbom-dir=$(BIN)/image-sbom --tags=$(VERSION) --image-refs=$(BIN)/image-refs-$$program $(if $(IMAGE),,--push=false --oci-layout-path=$(BIN)/image/$$program) || exit 1; \
	done

# The targets below are for the job that publishes a release. They run no code of the repository, and no tool but these two.
.PHONY: publish-tools
publish-tools: $(BIN)/crane-$(CRANE_VERSION) $(BIN)/cosign-$(COSIGN_VERSION)

.PHONY: release-digest
release-digest:
	@set -o pipefail; cd $(BIN) && find image image-sbom release -type f | LC_ALL=C sort | xargs sha256sum | sha256sum | cut -d' ' -f1

.PHONY: registry-login
registry-login: $(BIN)/crane-$(CRANE_VERSION)
	@printf %s "$$TOKEN" | $< auth login $(firstword $(subst /, ,$(IMAGE))) --username "$$ACTOR" --password-stdin

.PHONY: publish
publish: $(BIN)/crane-$(CRANE_VERSION) ## Push the images of make image, as they are in bin/image (IMAGE=registry/weir VERSION=v1.2.3)
	@for program in $(PROGRAMS); do \
	  $< push $(BIN)/image/$$program $(IMAGE)$${program#weir}:$(VERSION) --image-refs $(BIN)/image-refs-$$program || exit 1; \
	done

.PHONY: sign
sign: publish-tools
	@crane=$(BIN)/crane-$(CRANE_VERSION); cosign=$(BIN)/cosign-$(COSIGN_VERSION); \
	for program in $(PROGRAMS); do \
	  ref=$$(head -n 1 $(BIN)/image-refs-$$program) && \
	  $$cosign sign --yes --recursive "$$ref" && \
	  $$cosign attest --yes --type spdxjson --predicate $(BIN)/image-sbom/$$program-index.spdx.json "$$ref" || exit 1; \
	  for platform in $(PLATFORMS); do \
	    of=$$($$crane digest --full-ref --platform "$$platform" "$$ref") && \
	    $$cosign attest --yes --type spdxjson --predicate "$(BIN)/image-sbom/$$program-$${platform//\//-}.spdx.json" "$$of" || exit 1; \
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

# A tool is kept under its version's name, so that a new version is built and an
# old one is never taken for it.
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
