# syntax=docker/dockerfile:1
# docker build -t cloudkeel:0.1.0 .
#
# One static binary, the certificate authorities of the public, and nothing else: no shell, no package
# manager, no C library. It is built where it will run, so `--platform` gives other architectures.
# `cargo xtask image` writes the same image without a container engine.
ARG RUST_VERSION=1.95.0
# A tag can move; a digest cannot. Look it up once and pass it:
#   docker buildx imagetools inspect rust:1.95.0-alpine --format '{{.Manifest.Digest}}'
#   docker build --build-arg RUST_IMAGE=rust:1.95.0-alpine@sha256:… …
ARG RUST_IMAGE=rust:${RUST_VERSION}-alpine
FROM ${RUST_IMAGE} AS build
# The C compiler is for the one C library, inside the TLS crate ring.
RUN apk add --no-cache ca-certificates gcc musl-dev
WORKDIR /src
COPY . .
# Shown by `cloudkeel version`: docker build --build-arg "CLOUDKEEL_COMMIT=$(git rev-parse HEAD)" …
ARG CLOUDKEEL_COMMIT
# Every cloud, and nothing that only laptops and tests need. Fewer clouds make a smaller image.
ARG FEATURES=aws,digitalocean,hetzner,local,openstack,vsphere
# What was compiled before is kept in caches of the builder, which are no part of the image.
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/src/target \
    cargo build --locked --profile=image --package=cloudkeel --no-default-features --features "$FEATURES" \
        --target "$(uname -m)-unknown-linux-musl" \
 && cp "target/$(uname -m)-unknown-linux-musl/image/cloudkeel" /cloudkeel

# The file system of the image. Called by the name of a Go CCM, cloudkeel is the manager for that cloud
# (`hcloud-cloud-controller-manager` means `--cloud-provider=hcloud`), so a chart that names its program
# finds it where it looks: in /bin, in /usr/local/bin, or on the PATH. The program itself lists the names: a
# link for a cloud that is not in it would only fail later.
RUN install -D /cloudkeel /image/cloudkeel \
 && install -D -m 0644 /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ca-certificates.crt \
 && mkdir -p /image/bin /image/usr/local \
 && names="$(/image/cloudkeel providers --replaces)" \
 && for name in $names; do ln -s /cloudkeel "/image/bin/$name"; done \
 && ln -s /bin /image/usr/local/bin

# For charts that name the program as the first of their `args`, as OpenStack's does:
# docker build --target bare -t cloudkeel:0.1.0-bare .
FROM scratch AS bare
ARG CLOUDKEEL_COMMIT
LABEL org.opencontainers.image.title="cloudkeel" \
      org.opencontainers.image.description="A Kubernetes cloud-controller-manager with the clouds in it" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="https://github.com/cloudkeel/cloudkeel" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.revision="$CLOUDKEEL_COMMIT"
COPY --from=build /image /
ENV PATH=/bin
# It writes no file: run it with a read-only root, as the manifests do.
USER 65532:65532

FROM bare
ENTRYPOINT ["/cloudkeel"]
