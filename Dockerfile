# Two images of the same code: `docker build --target cpu -t wakeswap .` and `--target gpu -t wakeswap-gpu`. What is in
# them and why is in docs/images.md. The base has an exact tag; whoever mirrors it pins its digest too.

FROM python:3.11.14-slim-bookworm AS packages
WORKDIR /srv/build
COPY infra/image/pins.txt infra/image/tools-pins.txt ./
RUN --mount=type=cache,target=/root/.cache/pip \
    python3 -m venv --without-pip /srv/venv \
    && python3 -m pip --python /srv/venv/bin/python install --require-hashes --only-binary :all: --no-deps --no-compile -r pins.txt \
    && python3 -m venv --without-pip /srv/tools \
    && python3 -m pip --python /srv/tools/bin/python install --require-hashes --only-binary :all: --no-deps -r tools-pins.txt
COPY infra/__init__.py infra/
COPY infra/image/*.py infra/image/

FROM packages AS root-cpu
RUN /srv/tools/bin/cyclonedx-py environment --output-reproducible -o parts.json /srv/venv/bin/python \
    && python3 -m infra.image.rootfs /srv/venv parts.json /srv/root

FROM packages AS root-gpu
COPY infra/image/pins-gpu.txt ./
RUN --mount=type=cache,target=/root/.cache/pip \
    python3 -m pip --python /srv/venv/bin/python uninstall --yes onnxruntime \
    && python3 -m pip --python /srv/venv/bin/python install --require-hashes --only-binary :all: --no-deps --no-compile -r pins-gpu.txt
RUN /srv/tools/bin/cyclonedx-py environment --output-reproducible -o parts.json /srv/venv/bin/python \
    && python3 -m infra.image.rootfs /srv/venv parts.json /srv/root

FROM python:3.11.14-slim-bookworm AS code
WORKDIR /srv/app
COPY LICENSE NOTICE ./
COPY model-warmup model-warmup
COPY shared shared
COPY functions functions
COPY infra/__init__.py infra/
COPY infra/retention infra/retention
RUN python3 -m compileall -q --invalidation-mode unchecked-hash /srv/app

FROM scratch AS image
ENV PATH=/srv/venv/bin LANG=C.UTF-8 SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt \
    PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
LABEL org.opencontainers.image.title="Wakeswap" org.opencontainers.image.licenses="Apache-2.0"
WORKDIR /srv/app
EXPOSE 8080
USER 65532:65532

FROM image AS gpu
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
COPY --from=root-gpu /srv/root /
COPY --from=code /srv/app /srv/app

FROM image AS cpu
COPY --from=root-cpu /srv/root /
COPY --from=code /srv/app /srv/app
