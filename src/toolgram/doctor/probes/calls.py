"""Does it call: what a grammar makes certain of calls, and what only the model can do."""

from __future__ import annotations

from toolgram.doctor import judges
from toolgram.doctor.probe import Ask, Probe
from toolgram.doctor.probes.common import GOODBYE, RAIN, RAIN_AUTO, TIMER, WEATHER, Json, in_schema, said, tool

_MAIL = tool("send_email", "Send an email.", {"to": {"type": "string"}, "text": {"type": "string"}})
_NOTE = tool("save_note", "Save a note.", {"text": {"type": "string"}})
_HEAT = tool(
    "get_temperature", "Get the temperature.", {"city": {"type": "string"}, "unit": {"enum": ["kelvin", "rankine"]}}
)
_STRICT = tool("get_weather", "Get the weather.", {"city": {"enum": ["Paris", "Oslo"]}}, strict=True)
_NAMED = {"type": "function", "function": {"name": "set_timer"}}
_TWO_CITIES = "What is the weather in Paris and in Oslo, for 1 day?"
_OSLO = {"name": "get_weather", "arguments": '{"city": "Oslo", "days": 1}'}
_ANSWERED: Json = {
    "messages": [
        {"role": "user", "content": "What is the weather in Oslo?"},
        {"role": "assistant", "tool_calls": [{"id": "oslo00001", "type": "function", "function": _OSLO}]},
        {"role": "tool", "tool_call_id": "oslo00001", "name": "get_weather", "content": "Snow, 7 degrees below zero."},
    ],
    "tools": [WEATHER],
    "tool_choice": "none",
}

CALLS = (
    Probe(
        "required",
        "enforced",
        "Is there a call where one is required?",
        (Ask(said("Say hello.", WEATHER, tool_choice="required")),),
        judges.valid,
    ),
    Probe(
        "named",
        "enforced",
        "Is the named tool called, though another fits?",
        (Ask(said("What is the weather in Paris?", WEATHER, TIMER, tool_choice=_NAMED)),),
        judges.calls("set_timer"),
    ),
    Probe(
        "none",
        "enforced",
        "Is there no call where none is allowed?",
        (Ask(said("What is the weather in Paris?", WEATHER, tool_choice="none")),),
        judges.calls(),
    ),
    Probe(
        "one_call",
        "enforced",
        "Is it one call where one is allowed?",
        (Ask(said(_TWO_CITIES, WEATHER, tool_choice="required", parallel_tool_calls=False)),),
        judges.calls("get_weather"),
    ),
    Probe(
        "enum",
        "enforced",
        "Are enums in arguments kept?",
        (Ask(said("How many degrees Celsius is it in Paris?", _HEAT, tool_choice="required")),),
        judges.valid,
    ),
    Probe(
        "strict",
        "enforced",
        "Is the schema of a strict tool kept?",
        (Ask(said("What is the weather in Berlin?", _STRICT, tool_choice="required")),),
        judges.valid,
    ),
    Probe(
        "text",
        "enforced",
        "Do quotes and lines in arguments stay JSON?",
        (Ask(said('Save this note:\n"Hi!"\n\tprint("a\\n")', _NOTE, tool_choice="required")),),
        judges.valid,
    ),
    Probe(
        "call_or_answer",
        "enforced",
        "With a schema, is it a call or valid?",
        (Ask(said("How are you?", WEATHER, response_format=in_schema({"enum": ["zebra", "gnu"]}))),),
        judges.valid,
    ),
    Probe(
        "calls",
        "model",
        "Does it call by itself?",
        (RAIN_AUTO,),
        judges.calls("get_weather"),
        'ask for a call ("tool_choice": "required"), or favour calls ("tool_bias", with the embedded engine)',
    ),
    Probe(
        "refrains",
        "model",
        "Does it answer where no tool fits?",
        (GOODBYE,),
        judges.calls(),
        'offer tools only where they may be needed, or "tool_choice": "none"',
    ),
    Probe(
        "picks",
        "model",
        "Does it pick the tool that fits?",
        (Ask(said("Start a timer of 5 minutes.", WEATHER, TIMER, _MAIL, tool_choice="required")),),
        judges.calls("set_timer"),
        "offer few tools at a time, or name the one that is meant",
    ),
    Probe(
        "arguments",
        "model",
        "Are its arguments right?",
        (RAIN,),
        judges.calls_with("get_weather", {"city": "Paris", "days": 3}),
    ),
    Probe(
        "parallel",
        "model",
        "Are there two calls where two are needed?",
        (Ask(said(_TWO_CITIES, WEATHER, tool_choice="required", parallel_tool_calls=True)),),
        judges.calls("get_weather", "get_weather"),
        "ask for one thing at a time",
    ),
    Probe("ends_after_call", "model", "Does its turn end after a call?", (RAIN,), judges.ends_after_call),
    Probe(
        "results",
        "model",
        "Does it use what a tool answers?",
        (Ask(_ANSWERED),),
        judges.mentions("snow", "7 degrees", "-7", "seven"),
    ),
    Probe("arguments_stream", "server", "Do arguments arrive as they are written?", (RAIN,), judges.arguments_stream),
)
