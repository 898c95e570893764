# syntax=docker/dockerfile:1

# The compiler runs on the builder's own platform and cross-compiles.
FROM --platform=$BUILDPLATFORM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG TARGETOS TARGETARCH VERSION=dev
RUN --mount=type=cache,target=/go/pkg/mod \
    --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$VERSION" -o /out/bin/ ./cmd/... \
 && install -d -m 0700 /out/data

# No shell, no package manager: certificates, time zones and the binary.
FROM gcr.io/distroless/static-debian12:nonroot
LABEL org.opencontainers.image.title="Fencepost" \
      org.opencontainers.image.description="Locks over HTTP" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /out/bin/ /usr/local/bin/
# A new volume takes over the owner and the mode of this folder.
COPY --from=build --chown=65532:65532 /out/data /var/lib/fencepost
ENV FENCEPOST_LISTEN=0.0.0.0:8080 \
    FENCEPOST_DATA_DIR=/var/lib/fencepost
USER 65532:65532
VOLUME /var/lib/fencepost
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s CMD ["/usr/local/bin/api", "healthcheck"]
ENTRYPOINT ["/usr/local/bin/api"]
