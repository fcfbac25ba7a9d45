"""Engines that are servers, reached over HTTP."""
