"""The HTTP server: the APIs that existing clients speak, over any engine."""

from toolgram.errors import needing

with needing("server", "toolgram serve"):
    import orjson as orjson
    import prometheus_client as prometheus_client
    import starlette as starlette
    import uvicorn as uvicorn
