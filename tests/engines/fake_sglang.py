"""A server that speaks SGLang's protocol, as its `srt/entrypoints` have it; grammars are enforced by its backends.

No SGLang can be had where the tests run: what differs from vLLM is told here, the rest is that of `fake_vllm`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from engines.fake_vllm import FakeVllm


@dataclass
class FakeSglang(FakeVllm):
    """The same, with other routes and fields.

    One that is `closed` does not tell what it was started with; one that is `refusing` cannot read text up to a mark,
    as an older XGrammar.
    """

    bars: bool = False
    closed: bool = False
    refusing: bool = False

    @property
    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/health", self.health),
                Route("/v1/models", self.models),
                Route("/model_info", self.model_info),
                Route("/server_info", self.server_info),
                Route("/v1/tokenize", self.tokenize, methods=["POST"]),
                Route("/v1/completions", self.completions, methods=["POST"]),
            ]
        )

    async def models(self, request: Request) -> Response:
        card = {"object": "model", "created": 1, "owned_by": "sglang", "root": self.root, "max_model_len": self.context}
        return JSONResponse({"object": "list", "data": [{"id": name, **card} for name in self.names]})

    async def model_info(self, request: Request) -> Response:
        return JSONResponse({"model_path": self.root, "tokenizer_path": self.root, "is_generation": True})

    async def server_info(self, request: Request) -> Response:
        if self.closed:
            return JSONResponse({"detail": "Not Found"}, 404)
        return JSONResponse({"model_path": self.root, "grammar_backend": self.backend, "version": "0.5.9"})

    async def tokenize(self, request: Request) -> Response:
        body = await request.json()
        special = body.get("add_special_tokens", True)
        ids = [self.tokenizer.encode(text, add_special_tokens=special) for text in body["prompt"]]
        return JSONResponse({"tokens": ids, "count": [*map(len, ids)], "max_model_len": self.context})

    def accepted(self, body: dict[str, Any]) -> dict[str, Any] | str:
        """As its `protocol.py` has it: a number for `max_tokens`, `ebnf`, no ids of tokens; room for one token more."""
        most = body.get("max_tokens", 16)
        if not isinstance(most, int):
            return "Input should be a valid integer"
        if len(body["prompt"]) + most >= self.context:
            return f"Requested token count exceeds the model's maximum context length of {self.context} tokens."
        if self.refusing and "TagDispatch" in body.get("ebnf", ""):
            return "Invalid grammar request"
        own = {name: value for name, value in body.items() if name not in ("ebnf", "return_token_ids")}
        grammar = body.get("ebnf")
        return own if grammar is None else own | {"structured_outputs": {"grammar": grammar}}
