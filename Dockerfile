# docker build -t cloudkeel:0.1.0 .
#
# One static binary, the certificate authorities of the public, and nothing else: no shell, no package
# manager, no C library. It is built where it will run, so `--platform` gives other architectures.
ARG RUST_VERSION=1.95.0
FROM rust:${RUST_VERSION}-alpine AS build
# The C compiler is for the one C library, inside the TLS crate ring.
RUN apk add --no-cache ca-certificates gcc musl-dev
WORKDIR /src
COPY . .
# Shown by `cloudkeel version`: docker build --build-arg "CLOUDKEEL_COMMIT=$(git rev-parse HEAD)" …
ARG CLOUDKEEL_COMMIT
RUN cargo build --release --locked --package cloudkeel --target "$(uname -m)-unknown-linux-musl"

# The file system of the image. Called by the name of a Go CCM, cloudkeel is the manager for that cloud
# (`hcloud-cloud-controller-manager` means `--cloud-provider=hcloud`), so a chart that names its program
# finds it where it looks: in /bin, in /usr/local/bin, or on the PATH. The program itself lists the names: a
# link for a cloud that is not in it would only fail later.
RUN install -D "target/$(uname -m)-unknown-linux-musl/release/cloudkeel" /image/cloudkeel \
 && install -D -m 0644 /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ca-certificates.crt \
 && mkdir -p /image/bin /image/usr/local \
 && names="$(/image/cloudkeel providers --replaces)" \
 && for name in $names; do ln -s /cloudkeel "/image/bin/$name"; done \
 && ln -s /bin /image/usr/local/bin

# For charts that name the program as the first of their `args`, as OpenStack's does:
# docker build --target bare -t cloudkeel:0.1.0-bare .
FROM scratch AS bare
COPY --from=build /image /
ENV PATH=/bin
USER 65532:65532

FROM bare
ENTRYPOINT ["/cloudkeel"]
