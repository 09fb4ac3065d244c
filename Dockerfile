# The image that `make image` makes without an engine, made with one:
#
#	docker build --build-arg VERSION="$(git describe --tags --always)" -t network-controller .
#
# hack/image has a test that both say the same.

# The binary is cross-compiled: the compiler never runs emulated.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY . .
ARG VERSION=unknown
ARG TARGETOS
ARG TARGETARCH
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    hack/image/build.sh "$TARGETOS" "$TARGETARCH" /out/samplecrd-controller && \
    chmod 0555 /out/samplecrd-controller

FROM scratch
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="samplecrd-controller" \
      org.opencontainers.image.source="https://github.com/samplecrd/network-controller" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
COPY --from=build /out/samplecrd-controller /samplecrd-controller
WORKDIR /
USER 65532:65532
ENTRYPOINT ["/samplecrd-controller"]
