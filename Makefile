# One set of flags for all builds, so that the build cache serves them all.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath -buildvcs=false
export GOGC := 400

SHELL := /bin/bash
BIN := $(CURDIR)/.bin
MODULE := github.com/updraft-dev/updraft

K8S_VERSION := v1.34.4
K8S_LDFLAGS := -s -w \
	-X k8s.io/component-base/version.gitVersion=$(K8S_VERSION) -X k8s.io/component-base/version.gitMajor=1 \
	-X k8s.io/component-base/version.gitMinor=34 -X k8s.io/component-base/version.gitTreeState=clean \
	-X k8s.io/client-go/pkg/version.gitVersion=$(K8S_VERSION) -X k8s.io/client-go/pkg/version.gitMajor=1 \
	-X k8s.io/client-go/pkg/version.gitMinor=34 -X k8s.io/client-go/pkg/version.gitTreeState=clean
# Without its version the automation API refuses the CLI.
PULUMI_VERSION := 3.276.0
PULUMI_LDFLAGS := -s -w -X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=$(PULUMI_VERSION)

SERVERS := $(BIN)/etcd $(BIN)/kube-apiserver $(BIN)/kube-controller-manager $(BIN)/kubectl
PULUMI := $(BIN)/pulumi $(BIN)/pulumi-language-yaml
GENERATORS := $(BIN)/controller-gen $(BIN)/client-gen
LINTER := $(BIN)/golangci-lint

.DEFAULT_GOAL := help
.PHONY: help
help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Use

.PHONY: demo
demo: tools build ## Run the main job: apply a Stack, see it run, change it, delete it
	@hack/demo.sh

.PHONY: dev
dev: tools build ## Run Updraft on this machine until Ctrl-C
	@$(BIN)/updraft dev

##@ Build

.PHONY: build
build: ## Build Updraft's own programs that run on this machine
	@mkdir -p $(BIN)
	@echo "Building updraft and its agent"
	@go build -o $(BIN)/updraft ./cmd/updraft
	@go build -ldflags '-s -w' -o $(BIN)/agent ./cmd/agent

.PHONY: tools
tools: $(SERVERS) $(PULUMI) ## Build the programs of others from their Go modules, once (20 minutes on two cores)

# $(call tool,folder of its module,package,linker flags)
define tool
	@mkdir -p $(BIN)
	@echo "$$(date +%H:%M:%S) Building $(notdir $@) from its Go module (once; see README for how long)"
	@cd tools/$(1) && set -o pipefail && go build -ldflags '$(3)' -o $@ $(2) 2>&1 | { grep -v '^go: downloading' || true; }
	@touch $@
endef

$(BIN)/etcd: tools/etcd/go.mod
	$(call tool,etcd,go.etcd.io/etcd/server/v3,-s -w)
$(BIN)/kube-apiserver $(BIN)/kube-controller-manager $(BIN)/kubectl: tools/kubernetes/go.mod
	$(call tool,kubernetes,k8s.io/kubernetes/cmd/$(notdir $@),$(K8S_LDFLAGS))
$(BIN)/pulumi: tools/pulumi/go.mod
	$(call tool,pulumi,github.com/pulumi/pulumi/pkg/v3/cmd/pulumi,$(PULUMI_LDFLAGS))
$(BIN)/pulumi-language-yaml: tools/pulumi-yaml/go.mod
	$(call tool,pulumi-yaml,github.com/pulumi/pulumi-yaml/cmd/pulumi-language-yaml,-s -w)
$(BIN)/controller-gen: tools/generators/go.mod
	$(call tool,generators,sigs.k8s.io/controller-tools/cmd/controller-gen,-s -w)
$(BIN)/client-gen: tools/generators/go.mod
	$(call tool,generators,k8s.io/code-generator/cmd/client-gen,-s -w)
$(BIN)/golangci-lint: tools/lint/go.mod
	$(call tool,lint,github.com/golangci/golangci-lint/v2/cmd/golangci-lint,-s -w)

##@ Check

.PHONY: test
test: tools build verify lint ## Check and test everything
	@echo "Testing one package at a time: most bring up an API server of their own"
	go test -p 1 -timeout 30m ./...

.PHONY: lint
lint: $(LINTER) ## Check format and code by .golangci.yml, and go vet
	go vet ./...
	$(LINTER) run

.PHONY: abuse
abuse: tools ## Deliver every event twice and cut off every write (long; not part of make test)
	go vet -tags abuse ./test/abuse
	go test -tags abuse -timeout 60m ./test/abuse

.PHONY: bench
bench: tools build ## Measure what a user waits for and what an idle Stack costs
	@go run ./test/bench

.PHONY: generate
generate: $(GENERATORS) ## Generate deepcopy functions, CRDs, the clientset and the runbook's table
	@hack/generate.sh

.PHONY: verify
verify: $(GENERATORS) ## Check that what is generated is up to date
	@hack/verify.sh

.PHONY: clean
clean: ## Delete what was built
	rm -rf $(BIN)
