"""Ollama's API: the bodies of its requests, its answers."""
