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
# What Updraft runs with on one machine.
NEEDED := $(SERVERS) $(PULUMI)
GENERATORS := $(BIN)/controller-gen $(BIN)/client-gen
COLLECTOR := $(BIN)/collector
# What metrics are tested with.
METRICS := $(BIN)/prometheus $(BIN)/kube-state-metrics
LINTER := $(BIN)/golangci-lint
# What the test cluster needs beside the servers.
KNATIVE := $(addprefix $(BIN)/knative.dev/serving/cmd/,controller activator autoscaler webhook queue) \
	$(addprefix $(BIN)/knative.dev/eventing/cmd/,controller webhook mtchannel_broker broker/ingress broker/filter \
	in_memory/channel_controller in_memory/channel_dispatcher apiserver_receive_adapter mtping)
CLUSTER := $(addprefix $(BIN)/,kubelet kube-scheduler kube-proxy coredns traefik) $(KNATIVE) \
	$(addprefix $(BIN)/cluster/,forward images pause probe registry volumes)

.DEFAULT_GOAL := help
.PHONY: help
help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Use

.PHONY: demo
demo: $(NEEDED) build ## Run the main job: apply a Stack, see it run, change it, delete it
	@hack/demo.sh

.PHONY: dev
dev: $(NEEDED) build ## Run Updraft on this machine until Ctrl-C
	@$(BIN)/updraft dev

##@ Cluster

.PHONY: cluster
cluster: $(SERVERS) $(CLUSTER) ## Bring a one-node cluster with Knative up, in namespaces of its own (root, Debian)
	@test/cluster/up

.PHONY: cluster-programs
cluster-programs: $(SERVERS) $(CLUSTER) $(BIN)/ko ## Build what that cluster runs, and ko, once (as make cluster does)

.PHONY: cluster-prove
cluster-prove: ## Check that everything on that cluster works
	@test/cluster/prove

.PHONY: cluster-down
cluster-down: ## End that cluster and remove every trace of it
	@test/cluster/down

# The version that the objects of an installation and updraft itself carry, the
# kustomize folder that is installed (config, or an overlay of it), what else ko is
# told, and KEEP=1 for make uninstall.
VERSION ?= devel
OVERLAY ?= config
KO_FLAGS ?=
KEEP ?=
# What make bench-cluster is told: -warm, -zero and -many, each a number.
BENCH_FLAGS ?=

.PHONY: install
install: registry build $(BIN)/kubectl $(BIN)/ko ## Install Updraft on KUBECONFIG's cluster, with images that go to KO_DOCKER_REPO
	@set -o pipefail; $(BIN)/kubectl kustomize $(OVERLAY) | $(BIN)/updraft preflight -f -
	@manifests=$$(mktemp) && trap 'rm -f "$$manifests"' EXIT && \
		hack/resolve.sh $(OVERLAY) $(VERSION) --sbom=none $(KO_FLAGS) >"$$manifests" && $(BIN)/updraft install -f "$$manifests"

# Before anything that takes long.
.PHONY: registry
registry:
	@hack/registry.sh

.PHONY: uninstall
uninstall: build ## Take Updraft away from KUBECONFIG's cluster (KEEP=1: all but CRDs and what users applied)
	@$(BIN)/updraft uninstall $(if $(KEEP),--keep)

.PHONY: release
release: registry $(BIN)/kubectl $(BIN)/ko ## Write release/updraft.yaml and release/images.txt, with images that go to KO_DOCKER_REPO
	@hack/release.sh $(OVERLAY) $(VERSION) $(KO_FLAGS)

##@ Build

.PHONY: build
build: ## Build Updraft's own programs that run on this machine
	@mkdir -p $(BIN)
	@echo "Building updraft and its agent"
	@go build -ldflags '-X $(MODULE)/cmd/updraft/version.number=$(VERSION)' -o $(BIN)/updraft ./cmd/updraft
	@go build -ldflags '-s -w' -o $(BIN)/agent ./cmd/agent

.PHONY: tools
tools: $(NEEDED) $(COLLECTOR) $(METRICS) ## Build the programs of others from their Go modules, once (20 minutes on two cores)

# $(call tool,folder of its module,package,linker flags)
define tool
	@mkdir -p $(@D)
	@echo "$$(date +%H:%M:%S) Building $(notdir $@) from its Go module (once; see README for how long)"
	@cd tools/$(1) && set -o pipefail && go build -ldflags '$(3)' -o $@ $(2) 2>&1 | { grep -v '^go: downloading' || true; }
	@touch $@
endef

$(BIN)/etcd: tools/etcd/go.mod
	$(call tool,etcd,go.etcd.io/etcd/server/v3,-s -w)
$(addprefix $(BIN)/,kube-apiserver kube-controller-manager kubectl kubelet kube-scheduler kube-proxy): tools/kubernetes/go.mod
	$(call tool,kubernetes,k8s.io/kubernetes/cmd/$(notdir $@),$(K8S_LDFLAGS))
$(BIN)/pulumi: tools/pulumi/go.mod
	$(call tool,pulumi,github.com/pulumi/pulumi/pkg/v3/cmd/pulumi,$(PULUMI_LDFLAGS))
$(BIN)/pulumi-language-yaml: tools/pulumi-yaml/go.mod
	$(call tool,pulumi-yaml,github.com/pulumi/pulumi-yaml/cmd/pulumi-language-yaml,-s -w)
$(BIN)/pulumi-resource-kubernetes: tools/provider/go.mod tools/provider/main.go tools/provider/build.sh
	@echo "$$(date +%H:%M:%S) Building the Kubernetes provider from its Go module (once; about 15 minutes on two cores)"
	@set -o pipefail && tools/provider/build.sh $@ 2>&1 | { grep -v '^go: downloading' || true; }
$(BIN)/collector: tools/collector/go.mod tools/collector/main.go
	$(call tool,collector,.,-s -w)
$(BIN)/kube-state-metrics: tools/kube-state-metrics/go.mod
	$(call tool,kube-state-metrics,k8s.io/kube-state-metrics/v2,-s -w)
# With promtool: Debian's package, a download of 20 MB.
$(BIN)/prometheus: hack/prometheus.sh
	@hack/prometheus.sh $(BIN)
$(BIN)/ko: tools/ko/go.mod
	$(call tool,ko,github.com/google/ko,-s -w)
$(BIN)/controller-gen: tools/generators/go.mod
	$(call tool,generators,sigs.k8s.io/controller-tools/cmd/controller-gen,-s -w)
$(BIN)/client-gen: tools/generators/go.mod
	$(call tool,generators,k8s.io/code-generator/cmd/client-gen,-s -w)
$(BIN)/golangci-lint: tools/lint/go.mod
	$(call tool,lint,github.com/golangci/golangci-lint/v2/cmd/golangci-lint,-s -w)

# The test cluster's programs.
$(BIN)/coredns: tools/coredns/go.mod tools/coredns/main.go
	$(call tool,coredns,.,-s -w)
$(BIN)/knative.dev/%: tools/knative/go.mod
	$(call tool,knative,knative.dev/$*,-s -w)
$(BIN)/traefik: tools/traefik/go.mod tools/traefik/build.sh tools/traefik/dns.go.txt
	@echo "$$(date +%H:%M:%S) Building traefik from its Go module (once; see test/cluster/README.md for how long)"
	@set -o pipefail && tools/traefik/build.sh $@ 2>&1 | { grep -v '^go: downloading' || true; }
$(BIN)/cluster/%: test/cluster/programs/%/main.go test/cluster/programs/go.mod
	$(call tool,../test/cluster/programs,./$*,-s -w)

##@ Check

.PHONY: test
test: tools build verify lint ## Check and test everything
	@echo "Testing one package at a time: most bring up an API server of their own"
	go test -p 1 -timeout 30m ./...

.PHONY: lint
lint: $(LINTER) ## Check format and code by .golangci.yml; what go vet checks is in it
	@echo "Linting (the first time it looks at all that is imported, too)"
	@# It holds much at a time: with the GOGC of the builds it would take 10 GB.
	@GOGC=60 $(LINTER) run
	@cd test/cluster/programs && GOGC=60 $(LINTER) run --config $(CURDIR)/.golangci.yml

.PHONY: e2e
e2e: $(NEEDED) build $(BIN)/ko $(COLLECTOR) ## Install on KUBECONFIG's cluster, or on make cluster's, and test it end to end
	@hack/e2e.sh -short

.PHONY: e2e-long
e2e-long: $(NEEDED) build $(BIN)/ko $(COLLECTOR) $(BIN)/pulumi-resource-kubernetes ## The same, with 20 applies from zero in a row, 50 Stacks, and programs with real objects
	@hack/e2e.sh

.PHONY: abuse
abuse: $(NEEDED) ## Cut off every write of every scenario, and shuffle many times (long; make test cuts each situation once)
	go test -timeout 120m ./test/abuse -all -seeds 5

.PHONY: mutations
mutations: $(NEEDED) ## Break Updraft in each way of test/abuse/mutations, and see that the abuse harness finds it
	@go run ./hack/mutations

.PHONY: bench
bench: $(NEEDED) $(COLLECTOR) build ## Measure what a user waits for and what an idle Stack costs
	@go run ./test/bench

.PHONY: bench-cluster
bench-cluster: $(NEEDED) build $(BIN)/ko ## Measure what is installed on KUBECONFIG's cluster, or install on make cluster's, and say where the time goes
	@hack/bench-cluster.sh $(BENCH_FLAGS)

.PHONY: generate
generate: $(GENERATORS) ## Generate deepcopy functions, CRDs, the clientset, the runbook's table, schemas of events
	@hack/generate.sh

.PHONY: verify
verify: $(GENERATORS) ## Check that what is generated is up to date
	@hack/verify.sh

.PHONY: clean
clean: ## Delete what was built
	rm -rf $(BIN)
