# `make` alone lists the targets. They need Go, git and make. Output goes to build/
# and to ./samplecrd-controller.

.DEFAULT_GOAL := help
SHELL := bash

# The kubeconfig file of a cluster for run: make run KUBECONFIG=path.
# The environment variable of this name has no effect: its cluster may have a
# controller already. Not every shell expands a leading ~ there.
ifneq ($(origin KUBECONFIG),command line)
KUBECONFIG :=
endif

# Flags for the controller: make run FLAGS='-v=4 -workers=10'
FLAGS :=

KUBERNETES := build/bin/kubernetes
GOLANGCI_LINT := build/bin/golangci-lint
OPENSTACK := build/bin/openstack
NODE := build/bin/node
NODE_COMPONENTS := build/bin/node-components

# All builds and tests use the flags of a release, so that Go's build cache has each
# package once. Only gRPC, and what imports it, is there twice: tests have no tag.
export CGO_ENABLED ?= 0
export GOFLAGS := $(filter-out -trimpath,$(shell go env GOFLAGS)) -trimpath

# go build, without a line for each module that it downloads.
GO_BUILD = go build 2> >(sed '/^go: downloading /d' >&2)

# Runs a command with a local Kubernetes that is built, downloaded, or named by
# KUBEBUILDER_ASSETS.
export KUBEBUILDER_ASSETS
WITH_KUBERNETES := hack/kubernetes/with.sh

# The modules beside that of the root whose code is linted and tested.
MODULES := test/bench test/browser example/namespaceplus/runtime example/portrule example/aggregated

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-19s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: build hack-local ## Create, edit and delete a Network (KUBEBUILDER_ASSETS=folder: with the Kubernetes there)
	@exec $(WITH_KUBERNETES) build/bin/local exec hack/demo/network.sh

# These demos need kube-controller-manager, which other folders seldom have.
.PHONY: demo-namespaceplus
demo-namespaceplus demo-aggregated: export KUBEBUILDER_ASSETS :=
demo-namespaceplus: control-plane hack-local ## Give a tenant a namespace, break it, see it repaired (example/namespaceplus)
	@$(GO_BUILD) -o build/bin/namespaceplus ./example/namespaceplus
	@exec build/bin/local exec -controller-manager -apply crd,example/namespaceplus/deploy hack/demo/namespaceplus.sh

.PHONY: demo-portrule
demo-portrule: control-plane hack-local ## Restrict a port of a node with a PortRule, in network namespaces (as root)
	@cd example/portrule && $(GO_BUILD) -o ../../build/bin/portrule .
	@example/portrule/demo.sh

.PHONY: demo-aggregated
demo-aggregated: build control-plane hack-local ## Show what Neutron really has with an aggregated API (example/aggregated)
	@cd example/aggregated && $(GO_BUILD) -o ../../build/bin/neutron-api .
	@exec build/bin/local exec -controller-manager \
		-apply crd,example/aggregated/deploy/rbac.yaml,example/aggregated/local.yaml hack/demo/aggregated.sh

# OS_CLOUD has no effect on a local control plane. FLAGS=-cloud=name has.
.PHONY: run
run: check-flags hack-local ## Run the controller with FLAGS on a local control plane (KUBECONFIG=path: in that cluster)
	@exec $(if $(KUBECONFIG),,$(WITH_KUBERNETES) env -u OS_CLOUD) build/bin/local run $(if $(KUBECONFIG),-kubeconfig '$(KUBECONFIG:~/%=$(HOME)/%)') -- ./samplecrd-controller $(FLAGS)

# TOUR_FLAGS='-lang=zh' or -yes
TOUR_FLAGS :=

.PHONY: tour
tour: build hack-local ## Explain the path of a key step by step, beside the debug page in a browser
	@exec $(WITH_KUBERNETES) build/bin/local tour $(TOUR_FLAGS)

.PHONY: recording
recording: build hack-local ## Record the tour for docs/watch, whose page plays it
	@$(WITH_KUBERNETES) build/bin/local tour -record docs/watch/recording.js
	@hack/update-watch.sh

.PHONY: cluster
cluster: $(if $(KUBEBUILDER_ASSETS),,control-plane) hack-local ## Run a local Kubernetes without a controller, for the lessons
	@exec build/bin/local cluster

.PHONY: hack-local
hack-local:
	@$(GO_BUILD) -o build/bin/local ./hack/local

# The controller exits with 2 if it rejects a flag, and with 1 if it has no cluster.
# Without the variable, it does not notice that it is in a pod, where it requires -cloud.
.PHONY: check-flags
check-flags: build
	@output=$$(env -u KUBERNETES_SERVICE_HOST ./samplecrd-controller $(FLAGS) -kubeconfig=/dev/null -master= 2>&1) || \
		[[ $$? != 2 ]] || { echo "make run: FLAGS: $$output" >&2; exit 2; }

# What runs the tests. In .ci/run, it also notes how long each one takes.
GO_TEST := go test

.PHONY: test
test: control-plane ## Run all tests, on a real API server
	$(GO_TEST) -timeout 20m ./...

# The tests of namespaceplus are those of the root's module. With the variable, they run
# the program on controller-runtime.
.PHONY: test-examples
test-examples: build control-plane ## Test the examples that are modules of their own (PortRule: as root, with Debian's firewalld, dbus and nftables)
	@cd example/namespaceplus/runtime && $(GO_BUILD) -o ../../../build/bin/namespaceplus-runtime .
	@NAMESPACEPLUS_PROGRAM=$(CURDIR)/build/bin/namespaceplus-runtime go test -count=1 -timeout 20m ./example/namespaceplus
	@cd example/portrule && go test -count=1 -timeout 20m ./...
	@cd example/aggregated && go test -count=1 -timeout 20m ./...

# The lessons whose experiments make lessons runs: all, or the number of one.
LESSON := all

.PHONY: lessons
lessons: build control-plane ## Run the experiments of docs/learn as they are written (LESSON=05: of one)
	@LESSONS='$(LESSON)' go test -count=1 -timeout 60m -v -run '^TestExperiments$$' ./test/lessons

.PHONY: openstack
openstack: $(OPENSTACK) ## Run a real Keystone and Neutron on loopback until Ctrl-C (Debian 12, as root); prints how to use them
	@exec $(OPENSTACK)

.PHONY: test-openstack
test-openstack: control-plane $(OPENSTACK) ## Run the contract and the stories on a real Keystone and Neutron (OPENSTACK_RELEASE=trixie: of that Debian)
	@$(OPENSTACK) exec -- test/openstack/test.sh || { code=$$?; [[ $$code == 3 ]] || exit $$code; }

# KUBERNETES_VERSION=v1.31.4: the version of kube-apiserver. What differs in older ones is
# in docs/operate/compatibility.md.
WITHOUT_VALUES := TestMessagesAreOneLine|TestUpdates/valid_to_an_invalid_field
WITHOUT_RANGES := TestSpecs|TestRules/cidr_has_addresses_of_hosts|TestWarnings/overlapping_range
KUBERNETES_DIFFERS = $(if $(filter v1.31.%,$(KUBERNETES_VERSION)),$(WITHOUT_VALUES)|$(WITHOUT_RANGES),$\
	$(if $(filter v1.32.% v1.33.% v1.34.%,$(KUBERNETES_VERSION)),$(WITHOUT_VALUES)))
.PHONY: test-kubernetes
test-kubernetes: control-plane ## Test the CRD and the stories on another KUBERNETES_VERSION, such as v1.31.4
	@hack/kubernetes/apiserver.sh $(KUBERNETES_VERSION) build/kubernetes/$(KUBERNETES_VERSION)
	@KUBEBUILDER_ASSETS=$(CURDIR)/build/kubernetes/$(KUBERNETES_VERSION) \
		go test -count=1 -timeout 30m -skip '$(or $(KUBERNETES_DIFFERS),^$$)' ./pkg/apis/... ./test/stories

.PHONY: e2e
e2e: node ## Test the installation on a real node (Debian 12, as root)
	@test/e2e/run.sh || { code=$$?; [[ $$code == 3 ]] || exit $$code; }

.PHONY: $(OPENSTACK)
$(OPENSTACK):
	@$(GO_BUILD) -o $@ ./test/openstack

# The tag is that of a release: see hack/tools/image/build.sh.
.PHONY: build
build: ## Build ./samplecrd-controller
	@[[ -x samplecrd-controller ]] || echo "Building ./samplecrd-controller (the first build takes about a minute)."
	@$(GO_BUILD) -tags grpcnotrace -ldflags '-X main.version=$(VERSION)' -o samplecrd-controller .

.PHONY: control-plane
control-plane: ## Build etcd, kube-apiserver, kube-controller-manager and kubectl (minutes, once)
	@hack/kubernetes/build.sh $(KUBERNETES)

.PHONY: node
node: control-plane ## Build build/bin/node, which runs a command with a Kubernetes of one node
	@hack/kubernetes/build.sh $(NODE_COMPONENTS) ./node
	@$(GO_BUILD) -o $(NODE) ./test/node

.PHONY: generate
generate: ## Generate clients, deepcopy functions, the CRD, its reference, and the page of docs/watch
	@hack/update-codegen.sh

.PHONY: verify
verify: ## Check that generated code and go.mod are up to date, and that promises have tests
	@go test ./test/docs -run 'TestTests|TestPromises'
	@hack/verify-codegen.sh
	@for module in . $(MODULES); do go -C $$module mod tidy -diff || exit; done
	@go mod verify

# In hack/kubernetes, the linter reads only what imports no Kubernetes: otherwise
# it type-checks all of Kubernetes, which needs 11 GB of memory.
.PHONY: lint
lint: ## Run the linters, which also check the imports of packages and the words of all text
	@hack/tools/build.sh github.com/golangci/golangci-lint/v2/cmd/golangci-lint github.com/golangci/misspell/cmd/misspell
	@build/bin/misspell -error -dict hack/words.csv $$(git ls-files '*.md' '*.tmpl' '*.yaml' '*.sh' '*.txtar' ':!CONTRIBUTING.md')
	@build/bin/misspell -error -dict hack/words.csv -source go $$(git ls-files '*.go')
	@$(GOLANGCI_LINT) run --allow-parallel-runners ./...
	@cd hack/kubernetes && ../../$(GOLANGCI_LINT) run --allow-parallel-runners -c ../../.golangci.yml ./multicall
	@for module in $(MODULES); do \
		(cd $$module && $(CURDIR)/$(GOLANGCI_LINT) run --allow-parallel-runners -c $(CURDIR)/.golangci.yml ./...) || exit; \
	done
	@$(GOLANGCI_LINT) fmt --diff

FUZZTIME ?= 30s

.PHONY: fuzz
fuzz: ## Run each fuzz test, FUZZTIME=30s each
	@git grep -oE '^func Fuzz[A-Za-z]+' -- '*_test.go' | while IFS=: read -r file test; do \
		(set -x; go test -run '^$$' -fuzz "^$${test#func }$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x "./$${file%/*}" </dev/null) || exit; \
	done

# The packages that only compute, whose own tests must notice nearly every change
# of their code.
PURE_PACKAGES := pkg/plan pkg/status

.PHONY: mutation
mutation: ## Check that the tests of the pure packages fail when their code is changed (about 15 minutes)
	@hack/mutation/run.sh $(PURE_PACKAGES)
	@GREMLINS_FLAGS='-E (^|/)([^l]|limit)[^/]*\.go$$' hack/mutation/run.sh pkg/reconcile # only the ledger
	@GREMLINS_FLAGS='-E (^|/)l[^/]*\.go$$' hack/mutation/run.sh pkg/leaderelection # only the fence

# The variables of a release: make image VERSION=v1.2.3 ARCH=arm64. The image is
# not published yet: IMAGE is where it would be.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
REVISION ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
REPOSITORY := ghcr.io/samplecrd/network-controller
ARCH ?= $(shell go env GOARCH)
export VERSION REVISION SOURCE_DATE_EPOCH
image: export IMAGE ?= $(REPOSITORY):latest
release verify-release: export IMAGE ?= $(REPOSITORY):$(VERSION)

.PHONY: image
image: ## Build build/image.tar, to load into containerd, Docker, podman or kind
	@hack/tools/image/image.sh build/image.tar $(ARCH)

.PHONY: test-image
test-image: ## Check the contents of the image, and that it is reproducible
	@go -C hack/tools test ./image

.PHONY: test-kstatus
test-kstatus: ## Check what kstatus, and so Flux and other tools, make of each state of a Network
	@go -C test/kstatus test ./...

.PHONY: test-browser
test-browser: control-plane ## Test the debug page in a headless Chromium (needs chromium and npm, or Debian 12 and root)
	@go -C test/browser test -count=1 -timeout 20m ./...

.PHONY: screenshots
screenshots: control-plane ## Write the pictures of the debug page in docs/images, still and moving
	@go -C test/browser test -count=1 -timeout 30m -run TestPictures . -screenshots

# The benchmark, and the program on controller-runtime that it measures.
.PHONY: bench-programs
bench-programs: build control-plane
	@cd test/bench && $(GO_BUILD) -o ../../build/bin/bench . && \
		$(GO_BUILD) -o ../../build/bin/bench-controller-runtime ./controller-runtime

# The flags of the benchmark: make bench BENCH_FLAGS='-n 100 -most 100 -rounds 1'
BENCH_FLAGS ?=

.PHONY: bench
bench: bench-programs ## Measure the controller beside others (about 20 minutes); BENCH_FLAGS=-scale: with up to 100,000 Networks
	@exec build/bin/bench $(BENCH_FLAGS)

.PHONY: release
release: $(if $(KUBECTL),,control-plane) ## Build build/release: binaries, image, manifests, SBOMs, checksums
	@hack/tools/release/release.sh build/release

# TEST_FLAGS=-short leaves out the tests of vulncheck, which take two minutes.
TEST_FLAGS ?=

.PHONY: test-release
test-release: ## Check that a bad licence, a vulnerability or a missing database is found
	@go -C hack/tools test $(TEST_FLAGS) ./release

.PHONY: verify-release
verify-release: control-plane ## Check that two clones give identical releases
	@hack/tools/release/verify.sh

.PHONY: licenses
licenses: ## List the modules in the program and their licences; fails on one that may not be shipped
	@hack/tools/release/licenses.sh

.PHONY: vulncheck
vulncheck: ## Check for known vulnerabilities (GOVULNDB=file:///… uses a copy of the database)
	@hack/tools/release/vulncheck.sh

.PHONY: clean
clean: ## Remove build/ and ./samplecrd-controller
	rm -rf build samplecrd-controller
