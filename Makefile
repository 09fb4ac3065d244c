# What can be done here: `make` alone lists it. Nothing but Go, git and make is
# needed; what is built goes to build/ and to ./samplecrd-controller.

.DEFAULT_GOAL := help
SHELL := bash

# A cluster to use with `make run KUBECONFIG=…`, in place of a local control
# plane. The environment variable of that name is not meant: it may well point
# to a cluster that should not get a second controller.
ifneq ($(origin KUBECONFIG),command line)
KUBECONFIG :=
endif

# More flags for the controller: make run FLAGS='-v=4 -workers=10'
FLAGS :=

KUBERNETES := build/bin/kubernetes
GOLANGCI_LINT := build/bin/golangci-lint
OPENSTACK := build/bin/openstack
NODE := build/bin/node
NODE_COMPONENTS := build/bin/node-components

# go build, without a line for each module that it downloads.
GO_BUILD = CGO_ENABLED=0 go build -trimpath 2> >(sed '/^go: downloading /d' >&2)

.PHONY: help
help: ## List what can be done
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: control-plane build ## Watch a Network become a real network: create, edit, delete
	@$(GO_BUILD) -o build/bin/demo ./hack/demo
	@exec build/bin/demo

# A local control plane has no business with the cloud that OS_CLOUD names; say
# FLAGS=-cloud=… where it has.
.PHONY: run
run: $(if $(KUBECONFIG),,control-plane) build ## Run the controller on a local control plane, or with KUBECONFIG=path on yours
	@$(GO_BUILD) -o build/bin/run ./hack/run
	@exec env $(if $(KUBECONFIG),,-u OS_CLOUD) build/bin/run $(if $(KUBECONFIG),-kubeconfig '$(KUBECONFIG)') -- ./samplecrd-controller $(FLAGS)

.PHONY: test
test: control-plane ## Run all tests, on a real API server
	go test ./...

.PHONY: openstack
openstack: $(OPENSTACK) ## Start a real Keystone and Neutron on loopback (Debian 12, as root); prints how to use them
	@$(OPENSTACK) up

.PHONY: openstack-down
openstack-down: $(OPENSTACK) ## Stop them, and leave nothing
	@$(OPENSTACK) down

.PHONY: test-openstack
test-openstack: control-plane $(OPENSTACK) ## Run what there is of tests for it on a real Keystone and Neutron
	@$(OPENSTACK) exec -- test/openstack/test.sh || { code=$$?; [[ $$code == 3 ]] || exit $$code; }

.PHONY: e2e
e2e: $(if $(KUBECONFIG),,node) ## Install the controller and try all of it, on a real node (Debian 12, as root), or with KUBECONFIG=path on yours
	@test/e2e/run.sh $(if $(KUBECONFIG),'$(KUBECONFIG)') || { code=$$?; [[ $$code == 3 ]] || exit $$code; }

.PHONY: e2e-openstack
e2e-openstack: node $(OPENSTACK) ## Do its part with an OpenStack on a real Keystone and Neutron
	@test/e2e/run.sh -openstack || { code=$$?; [[ $$code == 3 ]] || exit $$code; }

.PHONY: $(OPENSTACK)
$(OPENSTACK):
	@$(GO_BUILD) -o $@ ./test/openstack

.PHONY: build
build: ## Build ./samplecrd-controller
	@[[ -x samplecrd-controller ]] || echo "Building ./samplecrd-controller (the first build takes about a minute)."
	@$(GO_BUILD) -ldflags '-X main.version=$(VERSION)' -o samplecrd-controller .

.PHONY: control-plane
control-plane: ## Build etcd, kube-apiserver, kube-controller-manager and kubectl (minutes, once)
	@hack/kubernetes/build.sh $(KUBERNETES)

.PHONY: node
node: control-plane ## Build what runs a command with a whole Kubernetes of one node: build/bin/node
	@hack/kubernetes/build.sh $(NODE_COMPONENTS) ./node
	@$(GO_BUILD) -o $(NODE) ./test/node

.PHONY: generate
generate: ## Generate clients, deepcopy functions, the CRD and its reference from the types
	@hack/update-codegen.sh

.PHONY: verify
verify: ## Check that what is generated and formatted is up to date
	@hack/verify-codegen.sh
	@go mod tidy -diff
	@go mod verify

.PHONY: lint
lint: ## Run the linters, which also hold the architecture
	@go -C hack/lint build -o ../../$(GOLANGCI_LINT) github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@$(GOLANGCI_LINT) run --allow-parallel-runners ./...
	@# Of hack/kubernetes only what imports no Kubernetes: linting main.go would
	@# type-check all of Kubernetes, which takes 11 GB.
	@cd hack/kubernetes && ../../$(GOLANGCI_LINT) run --allow-parallel-runners -c ../../.golangci.yml ./multicall
	@$(GOLANGCI_LINT) fmt --diff

.PHONY: fuzz
fuzz: ## Look for a state of the world in which a plan goes wrong, for a minute
	go test -run '^$$' -fuzz FuzzConverge -fuzztime 30s -fuzzminimizetime 1x ./pkg/plan
	go test -run '^$$' -fuzz FuzzDesiredFor -fuzztime 30s -fuzzminimizetime 1x ./pkg/plan
	go test -run '^$$' -fuzz FuzzRequestOf -fuzztime 30s -fuzzminimizetime 1x ./pkg/deployments

# The packages that only compute, whose own tests must notice nearly every change
# of their code.
PURE_PACKAGES := pkg/plan pkg/status pkg/deployments

.PHONY: mutation
mutation: ## Check that the tests of the pure packages fail when their code is changed (about 15 minutes)
	@hack/mutation/run.sh $(PURE_PACKAGES)

# What a release is made of. VERSION, IMAGE and ARCH can be given: make image
# VERSION=v1.2.3 ARCH=arm64. The image is published nowhere yet: its name only
# says where it would be.
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
	@hack/image/image.sh build/image.tar $(ARCH)

.PHONY: test-image
test-image: ## Check the contents of the image, and that it is reproducible
	@go -C hack/image test -count=1 ./...

.PHONY: release
release: $(if $(KUBECTL),,control-plane) ## Build build/release: binaries, image, install.yaml, SBOMs, checksums
	@hack/release/release.sh build/release

.PHONY: test-release
test-release: ## Check that a licence, a vulnerability or a missing database is not passed over
	@go -C hack/release test -count=1 ./...

.PHONY: verify-release
verify-release: control-plane ## Check that two clones give the same release, byte by byte
	@hack/release/verify.sh

.PHONY: licenses
licenses: ## Write docs/dependencies.md; fails on a licence that we do not ship
	@hack/release/licenses.sh

.PHONY: verify-licenses
verify-licenses: ## Check that docs/dependencies.md is up to date
	@hack/release/licenses.sh check

.PHONY: vulncheck
vulncheck: ## Look for known vulnerabilities (GOVULNDB=file:///… for a copy of the database)
	@hack/release/vulncheck.sh

.PHONY: clean
clean: ## Remove all that was built (Go's own cache stays)
	rm -rf build samplecrd-controller

.PHONY: prose
prose: ## Check the words, sentences and lines of the text
	@CGO_ENABLED=0 go run -trimpath ./hack/prose

lint: prose
