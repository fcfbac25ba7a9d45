"""`lint` finds seeded defects, each by its cause; what it says of well-known templates is kept to be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conftest import Golden
from situations import CHATML, WEATHER, tool
from toolgram.cli.app import app
from toolgram.doctor.template import abilities, example_call
from toolgram.planning.plan import plan
from toolgram.styles.lint import lint, verdict
from toolgram.template.chat_template import ChatTemplate

TEMPLATES = Path(__file__).resolve().parents[3] / "shared" / "templates"

SOUND = """\
{%- if tools %}<|im_start|>system
{% if messages[0].role == 'system' %}{{ messages[0].content }}
{% endif %}Tools:
{%- for tool in tools %}
{{ tool.function.name }}: {{ tool.function.description }} {{ tool.function.parameters | tojson }}
{%- endfor %}
<|im_end|>
{% endif %}
{%- for message in messages %}
{%- if message.role == 'system' and not tools %}<|im_start|>system
{{ message.content }}<|im_end|>
{% elif message.role == 'user' %}<|im_start|>user
{{ message.content }}<|im_end|>
{% elif message.role == 'assistant' %}<|im_start|>assistant
{% if message.reasoning_content %}<think>{{ message.reasoning_content }}</think>
{% endif %}{{ message.content or '' }}
{%- for call in message.tool_calls or [] %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor %}<|im_end|>
{% elif message.role == 'tool' %}<|im_start|>tool
{{ message.tool_call_id }} {{ message.content }}<|im_end|>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
USER = "<|im_start|>user\n{{ message.content }}"
START, CONTENT = "{%- for message in messages %}", "{{ message.content or '' }}"
SYSTEM = "{%- if message.role == 'system' and not tools %}<|im_start|>system\n"
SEEDS = [
    ("drops-user", USER, "<|im_start|>user\n{{ message.contents }}"),
    ("drops-answer", "{{ message.content or '' }}", ""),
    ("drops-turn", USER, "<|im_start|>user\n{{ message.content if loop.first or tools }}"),
    ("order", "{%- for message in messages %}", "{%- for message in messages | reverse %}"),
    ("drops-system", f"{SYSTEM}{{{{ message.content }}}}", SYSTEM),
    ("no-generation-prompt", "{%- if add_generation_prompt %}", "{%- if add_generation_promt %}"),
    ("generation-prompt", "prompt %}<|im_start|>assistant", "prompt %}<|assistant|>assistant"),
    ("tool-name", "{{ tool.function.name }}", "{{ tool.name }}"),
    ("tool-description", "{{ tool.function.description }}", "{{ tool.description }}"),
    ("tool-parameters", "{{ tool.function.parameters | tojson }}", "{{ tool.function.params | default({}) | tojson }}"),
    ("tools-by-system", "{%- if tools %}", "{%- if tools and messages[0].role == 'system' %}"),
    ("second-tool", "{%- for tool in tools %}", "{%- for tool in tools[:1] %}"),
    ("call-name", "{{ call.function.name }}", "{{ call.function.nam }}"),
    ("call-name", "{{ call.function.name }}", "{{ call.name }}"),
    ("call-arguments", "{{ call.function.arguments | tojson }}", "{{ call.arguments | default({}) | tojson }}"),
    ("call-arguments", "{{ call.function.arguments | tojson }}", "{}"),
    ("call-encoding", "{{ call.function.arguments | tojson }}", "{{ call.function.arguments | string | tojson }}"),

    ("second-call", "in message.tool_calls or [] %}", "in (message.tool_calls or [])[:1] %}"),
    ("no-results", "{{ message.tool_call_id }} {{ message.content }}", "{{ message.output }}"),
    ("no-results", "message.role == 'tool'", "message.role == 'function'"),
    ("prints-none", "{{ message.content or '' }}", "{{ message.content }}"),
    ("content-with-calls", "{{ message.content or '' }}", "{{ message.content if not message.tool_calls }}"),
    ("no-reasoning", "message.reasoning_content %}", "message.thoughts %}"),
    ("result-ids", "{{ message.tool_call_id }} ", ""),
    ("no-calls", "in message.tool_calls or [] %}", "in message.calls or [] %}"),
    ("no-tools", "{%- if tools %}", "{%- if tool_list %}"),
    ("date", "Tools:", "Today is {{ strftime_now('%d %b %Y') }}. Tools:"),
    ("refuses-system", START, START + "{% if message.role == 'system' %}{{ raise_exception('no') }}{% endif %}"),
    ("escapes", USER, USER.replace("content", "content | e")),
    ("one-call", START, START + "{% if (message.tool_calls or [])[1:] %}{{ raise_exception('') }}{% endif %}"),
    ("refuses-user", START, "{{ raise_exception('no') }}" + START),
    ("after-result", CONTENT, "{% if not loop.previtem or loop.previtem.role != 'tool' %}" + CONTENT + "{% endif %}"),
]  # fmt: skip


def test_a_sound_template_has_no_faults() -> None:
    findings = lint(ChatTemplate(SOUND))
    assert findings == ()
    assert verdict(findings) == "fit for conversations and for tools"


@pytest.mark.parametrize(
    ("sound", "other"),
    [
        # Calls are shown beside tools alone, as in a conversation that has some.
        ("in message.tool_calls or [] %}", "in (message.tool_calls or [] if tools else []) %}"),
        # A turn begins with white space, as Mistral's do, which a model can write itself.
        ("{%- if add_generation_prompt %}<|im_start|>assistant\n{% endif %}", ""),
    ],
)
def test_what_is_no_fault(sound: str, other: str) -> None:
    source = SOUND.replace(sound, other)
    assert source != SOUND
    if not other:
        source = source.replace("'assistant' %}<|im_start|>assistant\n", "'assistant' %} ")
    assert lint(ChatTemplate(source)) == ()


@pytest.mark.parametrize(("code", "sound", "broken"), SEEDS, ids=[f"{at}-{seed[0]}" for at, seed in enumerate(SEEDS)])
def test_a_seeded_defect_is_told_by_its_cause(code: str, sound: str, broken: str) -> None:
    assert sound in SOUND
    found = lint(ChatTemplate(SOUND.replace(sound, broken, 1)))
    assert code in [each.code for each in found]
    errors = {each.code for each in found if each.level == "error"}
    assert errors <= {code}, errors


@pytest.mark.skipif(not TEMPLATES.exists(), reason=f"there are no templates at {TEMPLATES}")
def test_what_is_said_of_well_known_templates(golden: Golden) -> None:
    lines: list[str] = []
    for file in sorted(TEMPLATES.glob("*.jinja")):
        found = lint(ChatTemplate.from_file(file, "<s>", "</s>"))
        lines += [f"{file.stem}: {each.level}: {each.what}" for each in found if each.level != "note"]
    golden("lint.txt", "\n".join([*lines, ""]))


def test_the_command(tmp_path: Path) -> None:
    file = tmp_path / "t.jinja"
    file.write_text(SOUND.replace("call.function.name", "call.function.nam"))
    result = CliRunner().invoke(app, ["lint", str(file)])
    assert result.exit_code == 1
    assert result.stdout.startswith("1 error: a call is rendered, and its name is missing\nstyle: ")
    assert (
        "error: a call is rendered, and its name is missing [call-name]\n  mend: print {{ call.function.name }}\n"
        in result.stdout
    )
    assert '    {"name": "", "arguments": {"zqcity": "zqfirst"}}\n' in result.stdout
    as_json = json.loads(CliRunner().invoke(app, ["lint", str(file), "--json"]).stdout)
    assert as_json["findings"][0]["code"] == "call-name"
    file.write_text(CHATML.source)
    assert CliRunner().invoke(app, ["lint", str(file)]).exit_code == 0
    file.write_text("{% if %}")
    broken = CliRunner().invoke(app, ["lint", str(file)])
    assert (broken.exit_code, broken.stdout.count("[syntax]")) == (1, 1)


def test_what_a_template_can_do_comes_after_the_verdict(tmp_path: Path) -> None:
    file = tmp_path / "t.jinja"
    file.write_text(SOUND)
    result = CliRunner().invoke(app, ["lint", str(file)])
    assert result.stdout.splitlines()[:8] == [
        "fit for conversations and for tools",
        "style: hermes (native), because it reads the template's own rendering of a tool call",
        "can: system messages; a conversation that the assistant begins; tools; calls (arguments as objects); several "
        "calls in a turn; content beside calls; results of tools (told apart by ids); reasoning of earlier turns; "
        "answers that are begun; control tokens in a user's text as text; the same prompt on another day",
        "cannot: pictures and sounds",
        "a call:",
        "    <tool_call>",
        '    {"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}',
        "    </tool_call>",
    ]
    document = json.loads(CliRunner().invoke(app, ["lint", str(file), "--json"]).stdout)
    assert document["call"].startswith("<tool_call>")
    assert {each["name"]: each["can"] for each in document["abilities"]}["calls"] is True


@pytest.mark.parametrize(
    ("sound", "broken", "ability"),
    [
        ("{{ message.content }}<|im_end|>\n{% elif message.role == 'assistant'", "{{ message.content }}<|im_end|>"
        "{{ strftime_now('%j %Y') }}\n{% elif message.role == 'assistant'", "the same prompt on another day"),
        ("<think>{{ message.reasoning_content }}</think>", "", "reasoning of earlier turns"),
        ("{%- for call in message.tool_calls or [] %}", "{%- for call in [] %}", "calls"),
    ],
)  # fmt: skip
def test_what_it_cannot_do_is_named(sound: str, broken: str, ability: str) -> None:
    assert sound in SOUND
    lacking = {each.name for each in abilities(ChatTemplate(SOUND.replace(sound, broken, 1))) if not each.can}
    assert ability in lacking
    assert ability not in {each.name for each in abilities(ChatTemplate(SOUND)) if not each.can}


@pytest.mark.skipif(not TEMPLATES.exists(), reason=f"there are no templates at {TEMPLATES}")
def test_the_call_that_is_shown_is_one_that_is_read() -> None:
    request = {"messages": [{"role": "user", "content": "Hi."}], "tools": [tool("get_weather", WEATHER)]}
    for file in sorted(TEMPLATES.glob("*.jinja")):
        template = ChatTemplate.from_file(file, "<s>", "</s>")
        shown = example_call(template)
        assert shown is not None, file.stem
        (call,) = plan(request, template).parse(shown).tool_calls
        assert (call.name, json.loads(call.arguments)) == ("get_weather", {"city": "Paris", "days": 3}), file.stem


def test_the_response_template_is_one_that_reads_the_calls_back(tmp_path: Path) -> None:
    text = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
    text += '<tool_call>\n{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}\n'
    text += "</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
    text += "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    file = tmp_path / "t.jinja"
    file.write_text(text)
    result = CliRunner().invoke(app, ["lint", str(file), "--response-template"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)["response_template"]
    assert "<tool_call>" in json.dumps(found)
    assert found["fields"]["tool_calls"]
    alone = CliRunner().invoke(app, ["lint", "--response-template"])
    assert "is of a template" in alone.stderr
