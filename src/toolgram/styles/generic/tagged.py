"""Styles that ask for calls as JSON between `<tool_call>` tags.

A turn, as Hermes 2 Pro writes it (model card of NousResearch/Hermes-2-Pro-Mistral-7B)::

    I will look that up.<tool_call>
    {"name": "get_weather", "arguments": {"city": "Paris"}}
    </tool_call>

`short` only lists the tools, for models that know the tags; `long` explains the tags too; `mixtral` is `long` for
models that write `<tool\\_call>`, as Markdown would have it; `hermes_2_pro` is the prompt that Hermes 2 Pro was trained
on.
"""

from __future__ import annotations

from toolgram.json_texts import compact
from toolgram.styles.base import Announcement, ToolStyle, answer_prompt, tool_list
from toolgram.wire.format import Arguments, Call, Content, Lit, Many, Mark, Name, Object, Opt, Seq, WireFormat


def tagged(opener: Mark, closer: Mark) -> WireFormat:
    """Free text, then calls as JSON objects between two tags."""
    call = Seq(opener, Lit("\n"), Object(("name", Name()), ("arguments", Arguments())), Lit("\n"), closer)
    return WireFormat(Seq(Opt(Content()), Many(Call(call), separator=Lit("\n"))))


TAGGED = tagged(Mark("<tool_call>"), Mark("</tool_call>"))
ESCAPED = tagged(Mark("<tool_call>", ("<tool\\_call>",)), Mark("</tool_call>", ("</tool\\_call>",)))

_EVERY_TIME = (
    "Call one or more functions to assist with the user query, every time this is possible. "
    "Don't make assumptions about what values to plug into functions. "
)
_HOW = """

To call each function, give its name and arguments within <tool_call></tool_call> XML tags as follows:
<tool_call>
{"name": <function-name>, "arguments": <args-dict>}
</tool_call>"""


def _tools(about: Announcement) -> str:
    return f"<tools>\n{tool_list(about.tools)}\n</tools>"


def _with_answer(text: str, about: Announcement) -> str:
    return f"{text}\n\n{answer_prompt(about.answer)}" if about.has_answer else text


def list_tools(about: Announcement) -> str:
    """The tools, without instructions on how to call them."""
    return _with_answer(f"Here are the tools available:\n{_tools(about)}", about)


def _long(about: Announcement) -> str:
    return _with_answer(f"{_EVERY_TIME}Here are the available tools:\n{_tools(about)}{_HOW}", about)


# The system prompt of Hermes 2 Pro's function calling, as its authors published it for agents; kept verbatim,
# since the model was trained on it (NousResearch/Hermes-Function-Calling).
_HERMES_BEFORE_DATE = """\
You are a function calling AI agent with self-recursion. You can call only one function at a time and \
analyse data you get from function response. You are provided with function signatures within \
<tools></tools> XML tags. The current date is: """
_HERMES_BEFORE_TOOLS = """\
. You may use agentic frameworks for reasoning and planning to help with user query. Please call a function \
and wait for function results to be provided to you in the next iteration. Don't make assumptions about \
what values to plug into function arguments. Once you have called a function, results will be fed back to \
you within <tool_response></tool_response> XML tags. Don't make assumptions about tool results if \
<tool_response> XML tags are not present since function hasn't been executed yet. Analyze the data once you \
get the results and call another function. At each iteration please continue adding the your analysis to \
previous summary. Your final response should directly answer the user query with an anlysis or summary of \
the results of function calls. Here are the available tools: <tools> ["""
_HERMES_AFTER_TOOLS = """\
] </tools> If the provided function signatures doesn't have the function you must call, you may write \
executable python code in markdown syntax and call code_interpreter() function as follows: <tool_call> \
{"arguments": {"code_markdown": <python-code>, "name": "code_interpreter"}} </tool_call> Make sure that the \
json object above with code markdown block is parseable with json.loads() and the XML block with XML \
ElementTree. Use the following pydantic model json schema for each tool call you will make: {'properties': \
{'arguments': {'title': 'Arguments', 'type': 'object'}, 'name': {'title': 'Name', 'type': 'string'}}, \
'required': ['arguments', 'name'], 'title': 'FunctionCall', 'type': 'object'} At the very first turn you \
don't have <tool_results> so you shouldn't not make up the results.
Please keep a running summary with analysis of previous function results and summaries from previous \
iterations.
Do not stop calling functions until the task has been accomplished or you've reached max iteration of 10.
Calling multiple functions at once can overload the system and increase cost so call one function at a time \
please.
If you plan to continue with analysis, always call another function.
For each function call return a valid json object (using doulbe quotes) with function name and arguments \
within <tool_call></tool_call> XML tags as follows:
<tool_call>
{"arguments": <args-dict>, "name": <function-name>}
</tool_call>
"""


def _hermes_2_pro(about: Announcement) -> str:
    tools = ", ".join(f"'{compact(tool)}'" for tool in about.tools)
    date = about.now.date().isoformat()
    prompt = f"{_HERMES_BEFORE_DATE}{date}{_HERMES_BEFORE_TOOLS}{tools}{_HERMES_AFTER_TOOLS}"
    return f"{prompt}\n{answer_prompt(about.answer)}" if about.has_answer else prompt


SHORT = ToolStyle("short", TAGGED, "lists the tools; for models that know <tool_call> tags", list_tools)
LONG = ToolStyle("long", TAGGED, "lists the tools and explains <tool_call> tags", _long)
MIXTRAL = ToolStyle("mixtral", ESCAPED, "as long, for models that escape the underscore of the tags", _long)
HERMES_2_PRO = ToolStyle("hermes_2_pro", TAGGED, "the agent prompt that Hermes 2 Pro was trained on", _hermes_2_pro)
