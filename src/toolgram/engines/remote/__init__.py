"""Engines that are servers, reached over HTTP."""

from toolgram.errors import needing

with needing("remote", "an engine that is a server"):
    import httpx2 as httpx2
