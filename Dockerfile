# toolgram as a server. It runs with a read-only root: `docker run --read-only --tmpfs /tmp`; models are under /models.
FROM python:3.13-slim AS build

WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN python -m venv /opt/toolgram \
    && /opt/toolgram/bin/pip install --no-cache-dir --disable-pip-version-check '.[server,hub,otel]'

FROM python:3.13-slim

# llama.cpp computes with OpenMP, which the slim image lacks. The distribution's own version is the one that fits.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libgomp1 \
    && rm -rf /var/lib/apt/lists/*

COPY --from=build /opt/toolgram /opt/toolgram
RUN useradd --uid 10001 --no-create-home --home-dir /models --shell /usr/sbin/nologin toolgram \
    && install --directory --owner=toolgram /models
ENV PATH=/opt/toolgram/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    XDG_CACHE_HOME=/models \
    HF_HOME=/models/huggingface \
    TOOLGRAM_HOST=0.0.0.0 \
    TOOLGRAM_PORT=8000

USER 10001
WORKDIR /models
VOLUME /models
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=10s --start-period=120s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request; urllib.request.urlopen(f'http://127.0.0.1:{os.environ[\"TOOLGRAM_PORT\"]}/health', timeout=8)"]
ENTRYPOINT ["toolgram"]
CMD ["serve"]
