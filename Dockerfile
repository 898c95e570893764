# syntax=docker/dockerfile:1
#
# docker build --build-arg VERSION=v1.2.3 --build-arg COMMIT="$(git rev-parse HEAD)" -t fencepost .
#
# deploy/check-image runs the steps of the stages `dashboard` and `build` without an engine,
# and the program on a tree like that of the last stage.

# The dashboard, which the server embeds.
FROM --platform=$BUILDPLATFORM node:22-bookworm-slim AS dashboard
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/root/.npm \
    cd dashboard && npm ci --no-audit --no-fund && npm run build \
 && node sbom.js >../dashboard.cdx.json

# The compiler runs on the builder's own platform and cross-compiles.
FROM --platform=$BUILDPLATFORM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
COPY api/go.mod api/
COPY client/go.mod client/
COPY cmd/fencepost/go.mod cmd/fencepost/go.sum cmd/fencepost/
RUN --mount=type=cache,target=/go/pkg/mod go mod download && go -C cmd/fencepost mod download
COPY . .
COPY --from=dashboard /src/dashboard/dist dashboard/dist
ARG TARGETOS TARGETARCH VERSION=dev COMMIT=
RUN --mount=type=cache,target=/go/pkg/mod \
    --mount=type=cache,target=/root/.cache/go-build,id=go-build-$TARGETARCH \
    for program in api fencepost; do CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -C cmd/$program -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$VERSION -X main.commit=$COMMIT" -o /out/bin/ . || exit; done \
 && go run github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0 bin \
    -json -noserial -notimestamp -version "$VERSION" -output /out/api.cdx.json /out/bin/api \
 && install -d -m 0700 /out/data

# No shell, no package manager: certificates, time zones and the binary.
FROM gcr.io/distroless/static-debian12:nonroot
ARG VERSION=dev COMMIT=
LABEL org.opencontainers.image.title="Fencepost" \
      org.opencontainers.image.description="Locks over HTTP" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$COMMIT" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /out/bin/ /usr/local/bin/
COPY --from=build /out/api.cdx.json /usr/share/sbom/api.cdx.json
COPY --from=dashboard /src/dashboard.cdx.json /usr/share/sbom/dashboard.cdx.json
# A new volume takes over the owner and the mode of this folder. Nothing else is written.
COPY --from=build --chown=65532:65532 /out/data /var/lib/fencepost
ENV FENCEPOST_LISTEN=0.0.0.0:8080 \
    FENCEPOST_DATA_DIR=/var/lib/fencepost
USER 65532:65532
VOLUME /var/lib/fencepost
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s CMD ["/usr/local/bin/api", "health"]
ENTRYPOINT ["/usr/local/bin/api"]
