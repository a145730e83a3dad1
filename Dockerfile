# Two images of one gateway:
#
#   docker build --target slim -t trunkline .        servers over HTTP; neither Node nor Python
#   docker build --target full -t trunkline:full .   with Node and uv, for servers that npx and uvx start
#
# Bases are arguments: SLIM_IMAGE=gcr.io/distroless/cc-debian12 has no shell. Any needs glibc 2.36 or newer. A release names each
# by digest; with that and SOURCE_DATE_EPOCH a build gives the same layers again.
ARG RUST_IMAGE=rust:1.95-bookworm
ARG SLIM_IMAGE=debian:bookworm-slim
ARG NODE_IMAGE=node:22-bookworm-slim
ARG UV_IMAGE=ghcr.io/astral-sh/uv:0.13.9

FROM ${RUST_IMAGE} AS build
ARG PROFILE=dist
ENV CARGO_INCREMENTAL=0 CARGO_TERM_COLOR=never
WORKDIR /src
SHELL ["/bin/sh", "-euc"]

# Dependencies, built from the manifests alone: this layer stays until one of them changes.
COPY Cargo.toml Cargo.lock ./
COPY gateway/Cargo.toml gateway/
COPY gateway/admin/Cargo.toml gateway/admin/
COPY gateway/call/Cargo.toml gateway/call/
COPY gateway/client/Cargo.toml gateway/client/
COPY gateway/downstream/Cargo.toml gateway/downstream/
COPY gateway/foundation/Cargo.toml gateway/foundation/
COPY gateway/oauth/Cargo.toml gateway/oauth/
COPY gateway/policy/Cargo.toml gateway/policy/
COPY gateway/protocol/Cargo.toml gateway/protocol/
COPY gateway/telemetry/Cargo.toml gateway/telemetry/
COPY tests/Cargo.toml tests/
RUN sed -i '/^\[lib\]/,$d' tests/Cargo.toml; \
    for manifest in gateway/Cargo.toml gateway/*/Cargo.toml tests/Cargo.toml; do \
      mkdir -p "$(dirname "$manifest")/src"; touch "$(dirname "$manifest")/src/lib.rs"; done; \
    echo 'fn main() {}' > gateway/src/main.rs; \
    cargo build --locked --package trunkline --profile "$PROFILE"

# The sources are newer than what was built from the empty ones, whatever the clock of the checkout says.
COPY gateway gateway
RUN find gateway -name '*.rs' -exec touch {} +; \
    cargo build --locked --package trunkline --profile "$PROFILE"; \
    install -D "target/$(test "$PROFILE" = dev && echo debug || echo "$PROFILE")/trunkline" /out/usr/local/bin/trunkline; \
    /out/usr/local/bin/trunkline version; \
    install -D -m 644 /etc/ssl/certs/ca-certificates.crt /out/etc/ssl/certs/ca-certificates.crt; \
    install -d -m 700 /home-of-the-gateway

# What a container needs and a laptop does not; the second file is for a configuration of one's own, and is read after it.
COPY LICENSE /out/usr/share/doc/trunkline/LICENSE
RUN mkdir -p /out/etc/trunkline; \
    printf '# Without tokens in your configuration one is made, shown in the log once and kept in the home folder.\n[auth]\ngenerate_token = true\n' \
      > /out/etc/trunkline/container.toml; \
    echo '# Mount your configuration over this file.' > /out/etc/trunkline/config.toml; \
    chmod 644 /out/etc/trunkline/*.toml /out/usr/share/doc/trunkline/LICENSE

FROM ${UV_IMAGE} AS uv

FROM ${NODE_IMAGE} AS full
# The base, by its digest, decides the versions.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates git \
 && rm -rf /var/lib/apt/lists/* /var/log/* /var/cache/*
COPY --from=uv /uv /uvx /usr/local/bin/
COPY --from=build /out /
COPY --from=build --chown=65532:65532 /home-of-the-gateway /var/lib/trunkline
# Caches of npx and uvx lie in the home folder; the rest of the image may be read-only.
ENV HOME=/var/lib/trunkline \
    TRUNKLINE_SERVER__LISTEN=0.0.0.0:8808 \
    TRUNKLINE_ADMIN__LISTEN=0.0.0.0:9808
LABEL org.opencontainers.image.title="Trunkline" \
      org.opencontainers.image.description="One MCP endpoint in front of many MCP servers" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0"
WORKDIR /var/lib/trunkline
VOLUME /var/lib/trunkline
USER 65532:65532
EXPOSE 8808 9808
STOPSIGNAL SIGTERM
# By the control socket: no address, no token, no other program.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s CMD ["trunkline", "ls"]
ENTRYPOINT ["trunkline"]
CMD ["serve", "--config", "/etc/trunkline/container.toml", "--config", "/etc/trunkline/config.toml"]

# The last stage is what a build without `--target` makes.
FROM ${SLIM_IMAGE} AS slim
COPY --from=build /out /
COPY --from=build --chown=65532:65532 /home-of-the-gateway /var/lib/trunkline
ENV HOME=/var/lib/trunkline \
    TRUNKLINE_SERVER__LISTEN=0.0.0.0:8808 \
    TRUNKLINE_ADMIN__LISTEN=0.0.0.0:9808
LABEL org.opencontainers.image.title="Trunkline" \
      org.opencontainers.image.description="One MCP endpoint in front of many MCP servers" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0"
WORKDIR /var/lib/trunkline
VOLUME /var/lib/trunkline
USER 65532:65532
EXPOSE 8808 9808
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s CMD ["trunkline", "ls"]
ENTRYPOINT ["trunkline"]
CMD ["serve", "--config", "/etc/trunkline/container.toml", "--config", "/etc/trunkline/config.toml"]
