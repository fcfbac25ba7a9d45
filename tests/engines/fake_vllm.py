"""A server that speaks vLLM's protocol and has its faults on demand; a random writer stands in for the model.

Grammars are enforced as vLLM does it, token by token, by XGrammar or llguidance.
"""

from __future__ import annotations

import asyncio
import base64
import codecs
import json
import random
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from engines.small_tokenizer import SPECIAL, small_tokenizer
from oracles import xgrammar
from toolgram.engines.external.masks import Mask, TokenMasks
from toolgram.engines.remote.enforcement import WORD
from toolgram.engines.stops import StopScanner
from toolgram.errors import EngineError

CONTEXT = 4096
IMAGE_TOKENS = 16
_WORDS = ["The ", "Straße ", "日本 ", "🎉 ", "sea\n", "\u2028", "was ", "blue", ", ", "naïve "]
_CLOSING = '"}]\n'
_MOST_FREE = 300


@dataclass(frozen=True)
class OwnGrammar:
    """A grammar as it came over the wire."""

    text: str

    @property
    def grammar(self) -> OwnGrammar:
        return self

    def to(self, dialect: str, /) -> str:
        return self.text


class Tag:
    """A structural tag, for XGrammar's compiler."""

    def __init__(self, text: str) -> None:
        self.text = text


@dataclass
class FakeVllm:
    """What the server does, and what it was asked.

    `fault`: "500" fails, "busy" has no room, "half" breaks off after some tokens, "silent" says nothing at all,
    "dead" fails `/health` too. `pause` is the time for a token. It serves one model by its `names`; `root` is where its
    files are, and its chat `template` is told if there is one. With `unread` it ignores grammars; whether it does so is
    not in what it was `asked`. Its model is shown images if a token is their `placeholder`, each of IMAGE_TOKENS, where
    it was started for `scale_out`; one before 0.32, which `takes_parts` no more than any other field, drops them. One
    that `bars` special tokens does so in all that XGrammar compiles but structural tags, as vLLM does from 0.33 on. One
    that `ends_anyhow` lets a grammar end with any token that stops the request, as vLLM does since its #49227.
    """

    backend: str = "xgrammar"
    bars: bool = True
    ends_anyhow: bool = True
    fault: str | None = None
    pause: float = 0.0
    url: str = ""
    special: Sequence[str] = SPECIAL
    context: int = CONTEXT
    names: Sequence[str] = ("org/model",)
    root: str = "org/model"
    template: str = ""
    unread: bool = False
    placeholder: str | None = None
    scale_out: bool = True
    takes_parts: bool = True
    asked: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    images: list[list[str]] = field(default_factory=list[list[str]])
    running: int = 0
    most_at_once: int = 0
    aborted: int = 0

    def __post_init__(self) -> None:
        self.tokenizer = small_tokenizer(self.special)
        if self.backend == "xgrammar":
            xgrammar()
        self.masks = TokenMasks(self.tokenizer, backend=self.backend)  # type: ignore[arg-type] - one of two
        self.pieces = [self._piece(token) for token in range(len(self.tokenizer))]
        self.end = self.tokenizer.eos_token_id
        self.haste = random.Random(1)

    def _piece(self, token: int) -> bytes:
        if token in self.tokenizer.added_tokens_decoder:
            return self.tokenizer.convert_ids_to_tokens(token).encode()
        text = self.tokenizer.convert_ids_to_tokens(token)
        return bytes(_BYTES[char] for char in text)

    @property
    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/health", self.health),
                Route("/version", self.version),
                Route("/v1/models", self.models),
                Route("/tokenizer_info", self.tokenizer_info),
                Route("/tokenize", self.tokenize, methods=["POST"]),
                Route("/v1/completions", self.completions, methods=["POST"]),
                Route("/inference/v1/generate", self.generate, methods=["POST"]),
            ]
        )

    async def health(self, request: Request) -> Response:
        return Response(status_code=503 if self.fault == "dead" else 200)

    async def version(self, request: Request) -> Response:
        return JSONResponse({"version": "0.33.0"})

    async def models(self, request: Request) -> Response:
        card = {"object": "model", "created": 1, "owned_by": "vllm", "root": self.root, "max_model_len": self.context}
        return JSONResponse({"object": "list", "data": [{"id": name, **card} for name in self.names]})

    async def tokenizer_info(self, request: Request) -> Response:
        """Only a server that was started with --enable-tokenizer-info-endpoint has it."""
        if not self.template:
            return JSONResponse({"detail": "Not Found"}, 404)
        end = {"__type": "AddedToken", "content": "<|im_end|>", "special": True}
        config = {"tokenizer_class": "Qwen2TokenizerFast", "bos_token": None, "eos_token": end}
        return JSONResponse({**config, "chat_template": self.template})

    async def tokenize(self, request: Request) -> Response:
        if self.fault == "dead":
            return _error(500, "EngineDeadError")
        body = await request.json()
        if "messages" in body:
            taken = self.placeholder is not None
            return (
                JSONResponse({"count": 1, "tokens": [1]})
                if taken
                else _error(400, "At most 0 image(s) may be provided")
            )
        ids = self.tokenizer.encode(body["prompt"], add_special_tokens=body.get("add_special_tokens", True))
        answer = {"count": len(ids), "max_model_len": self.context, "tokens": ids}
        if body.get("return_token_strs"):
            answer["token_strs"] = self.tokenizer.convert_ids_to_tokens(ids)
        return JSONResponse(answer)

    async def generate(self, request: Request) -> Response:
        """The endpoint that takes tokens and images."""
        if not self.scale_out:
            return _error(403, "Scale-out endpoints are disabled.")
        asked = await request.json()
        if self.takes_parts and not isinstance(asked.get("content_parts", []), list):
            return _error(400, "body.content_parts: Input should be a valid list, body.output_mode: Input should be …")
        if not (ids := asked["token_ids"]):
            return _error(400, "token_ids: List should have at least 1 item after validation, not 0")
        images = asked["content_parts"]
        token = self.tokenizer.convert_tokens_to_ids(self.placeholder)
        if ids.count(token) != len(images) or asked["output_mode"] != "text":
            return _error(500, "Failed to apply prompt replacement")
        for image in images:
            head, _, data = image["url"].partition(";base64,")
            if head != "data:image/png" or b"IEND" not in base64.b64decode(data):
                return _error(400, "Failed to load image: image file is truncated")
        told = {name: asked[name] for name in ("stream", "stream_options")}
        prompt = [each for id_ in ids for each in [id_] * (IMAGE_TOKENS if id_ == token else 1)]
        self.images.append([image["url"] for image in images])
        return self._completed({**asked["sampling_params"], **told, "prompt": prompt, "return_token_ids": True})

    async def completions(self, request: Request) -> Response:
        return self._completed(await request.json())

    def _completed(self, asked: dict[str, Any]) -> Response:
        body = self.accepted(asked)
        if WORD not in str(asked):
            self.asked.append(asked)
        if isinstance(body, str):
            return _error(400, body)
        if self.fault in ("500", "dead"):
            return _error(500, "EngineCore encountered an issue.")
        if self.fault == "busy":
            return _error(503, "The server is overloaded.")
        prompt = body["prompt"]
        ids = prompt if isinstance(prompt, list) else self.tokenizer.encode(prompt)
        most = body.get("max_tokens") or 16
        if len(ids) + 1 > self.context:
            return _error(400, f"This model's maximum context length is {self.context} tokens.")
        if most > self.context:
            return _error(400, f"max_tokens={most} cannot be greater than max_model_len={self.context}.")
        try:
            masks = self._followed(None if self.unread else body.get("structured_outputs"))
        except (EngineError, RuntimeError, ValueError):
            told = _sse(
                {"error": {"message": "Invalid grammar specification.", "type": "BadRequestError", "code": 400}}
            )
            return Response(told + b"data: [DONE]\n\n", media_type="text/event-stream")  # the stream has begun by then
        seed = body.get("seed") if body["temperature"] else None
        fixed = seed is not None or not body["temperature"]
        dice = random.Random(f"{seed} {ids}" if fixed else None)
        return StreamingResponse(self._stream(body, ids, most, masks, dice), media_type="text/event-stream")

    def accepted(self, body: dict[str, Any]) -> dict[str, Any] | str:
        """A body as it is understood, or what is wrong with it."""
        return body

    def _followed(self, outputs: dict[str, str] | None) -> Generator[Mask, int, None] | None:
        if not outputs:
            return None
        if "structural_tag" in outputs:
            return self._followed_tag(outputs["structural_tag"])
        steps = self.masks.follow(OwnGrammar(outputs["grammar"]))
        return _begun(self._without_special(steps) if self.bars and self.backend == "xgrammar" else steps)

    def _without_special(self, steps: Generator[Mask, int, None]) -> Generator[Mask, int, None]:
        special = [token for token in self.tokenizer.added_tokens_decoder if token != self.end]
        mask = next(steps)
        while True:
            mask = mask.copy()
            mask[special] = False
            mask = steps.send((yield mask))

    def _followed_tag(self, tag: str) -> Generator[Mask, int, None]:
        info = xgrammar().TokenizerInfo.from_huggingface(self.tokenizer, stop_token_ids=[self.end])
        compiled = xgrammar().GrammarCompiler(info).compile_structural_tag(tag)
        matcher = xgrammar().GrammarMatcher(compiled)

        def steps() -> Generator[Mask, int, None]:
            bits = np.zeros((1, -(-len(self.pieces) // 32)), dtype=np.int32)
            while True:
                matcher.fill_next_token_bitmask(bits)
                mask = np.unpackbits(bits.view(np.uint8)[0], bitorder="little")[: len(self.pieces)].view(np.bool_)
                token = yield mask
                if token == self.end:
                    return
                assert matcher.accept_token(token)

        return _begun(steps())

    async def _stream(
        self,
        body: dict[str, Any],
        prompt: list[int],
        most: int,
        masks: Generator[Mask, int, None] | None,
        dice: random.Random,
    ) -> AsyncGenerator[bytes, None]:
        said, finish, done = 0, "length", False
        decoder, scanner = codecs.getincrementaldecoder("utf-8")("replace"), StopScanner(body.get("stop") or ())
        ends = {self.end, *body.get("stop_token_ids", ())}
        bias = {int(token): added for token, added in body.get("logit_bias", {}).items()}
        last = ends if self.ends_anyhow else {self.end}
        tokens = self._constrained(masks, dice, last, bias) if masks else self._free(dice)
        event, text = list[int](), ""
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)
        try:
            while said < most and not done:
                await asyncio.sleep(self.pause)
                if self.fault == "silent":
                    await asyncio.sleep(30)
                if self.fault == "half" and said == 5:
                    raise ConnectionError("as asked")
                token = next(tokens)
                said += 1
                event.append(token)
                piece = b"" if token in ends or self._hidden(token, body) else self.pieces[token]
                text += scanner.feed(decoder.decode(piece))
                if done := token in ends or scanner.stopped:
                    finish = "stop"
                if ended := done or said == most:
                    text += "" if scanner.stopped else scanner.finish()
                if ended or self.haste.random() < 0.8:  # a server that is ahead of its client tells several at once
                    word = scanner.found or (token if done and token != self.end else None)
                    yield self._event(body, text, event, finish if ended else None, word)
                    event, text = [], ""
            usage = {"prompt_tokens": len(prompt), "completion_tokens": said, "total_tokens": len(prompt) + said}
            if (body.get("stream_options") or {}).get("include_usage") and self.fault != "uncounted":
                yield _sse({"object": "text_completion", "choices": [], "usage": usage})
            yield b"data: [DONE]\n\n"
            done = True
        finally:
            self.running -= 1
            self.aborted += not done

    def _hidden(self, token: int, body: dict[str, Any]) -> bool:
        return body.get("skip_special_tokens", True) and token in self.tokenizer.added_tokens_decoder

    def _event(
        self, body: dict[str, Any], text: str, tokens: list[int], finish: str | None, word: str | int | None
    ) -> bytes:
        likely = None if body.get("logprobs") is None else self._likely(tokens, body["logprobs"])
        choice: dict[str, Any] = {
            "index": 0,
            "text": text,
            "logprobs": likely,
            "finish_reason": finish,
            "stop_reason": word,
        }
        if body.get("return_token_ids"):
            choice["token_ids"] = tokens
        return _sse({"object": "text_completion", "choices": [choice], "usage": None})

    def _likely(self, tokens: list[int], top: int) -> dict[str, Any]:
        """In the shape of the completions API: each token first, less likely ones after it."""
        texts = [self.pieces[token].decode(errors="replace") for token in tokens]
        best = [{text: -0.5, **{f"{text}?{n}": -0.5 - n for n in range(1, top)}} for text in texts]
        return {"tokens": texts, "token_logprobs": [-0.5] * len(texts), "top_logprobs": best}

    def _constrained(
        self, masks: Generator[Mask, int, None], dice: random.Random, ends: set[int], bias: Mapping[int, float]
    ) -> Generator[int, None, None]:
        """Any token that may come, but rather one that comes to an end; before all an end with a bias towards it."""
        mask = masks.send(None)  # type: ignore[arg-type] - how a generator is begun
        while True:
            allowed = sorted({*np.flatnonzero(mask).tolist(), *(ends if mask[self.end] else ())})
            wanted = [t for t in allowed if bias.get(t, 0) > 0 and mask[self.end]]
            closing = [t for t in allowed if t in ends or self.pieces[t] in map(str.encode, _CLOSING)]
            token = dice.choice(wanted or (closing if closing and dice.random() < 0.4 else allowed))
            yield token
            mask = masks.send(token)

    def _free(self, dice: random.Random) -> Generator[int, None, None]:
        for _ in range(dice.randrange(20, _MOST_FREE)):
            yield from self.tokenizer.encode(dice.choice(_WORDS), add_special_tokens=False)
        yield self.end


def _begun(steps: Generator[Mask, int, None]) -> Generator[Mask, int, None]:
    """The same steps, but that the first is taken now, so that a bad grammar is an error now."""
    first = next(steps)

    def again() -> Generator[Mask, int, None]:
        mask = first
        while True:
            mask = steps.send((yield mask))

    return again()


def _error(status: int, message: str) -> Response:
    return JSONResponse({"error": {"message": message, "type": "BadRequestError", "code": status}}, status)


def _sse(value: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


def _byte_of_each_char() -> dict[str, int]:
    """GPT-2's spelling of bytes: those that can be printed as they are, the others from U+0100 on."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return {chr(byte): byte for byte in shown} | {chr(256 + n): byte for n, byte in enumerate(hidden)}


_BYTES = _byte_of_each_char()


@contextmanager
def serving(app: Callable[..., Any]) -> Generator[str]:
    """The address at which an ASGI application is served meanwhile, from a thread."""
    server = uvicorn.Server(
        uvicorn.Config(app, port=0, log_level="critical", lifespan="off", timeout_graceful_shutdown=1)
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        threading.Event().wait(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
