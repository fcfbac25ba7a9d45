// What an assistant's message says: reasoning, content, calls.

import { element } from "../common/dom.js";
import { coloured, indentedIfComplete } from "../common/json.js";

export function partsOf({ content, reasoning_content: reasoning, tool_calls: calls }, divergences = []) {
  const parts = [];
  if (reasoning) parts.push(part("Reasoning", element("p", reasoning, "text reasoning")));
  if (content) parts.push(part("Content", shown(content), changed(divergences, null), "content"));
  for (const [at, call] of (calls ?? []).entries()) {
    const { name, arguments: given, input } = call.function ?? call.custom ?? {};
    const made = part("Tool call", given === undefined ? element("pre", input ?? "") : json(given), changed(divergences, at));
    made.firstElementChild.append(" ", element("code", name ?? ""), " ", element("small", call.id ?? ""));
    if (call.incomplete) made.append(element("p", "cut off: its arguments are not complete", "note"));
    parts.push(made);
  }
  return parts;
}

// A text, indented and coloured if it is a JSON object or array.
export function shown(text) {
  return /^\s*[[{]/.test(text) ? json(text) : element("p", text, "text");
}

function json(text) {
  const made = element("pre", "", "json");
  made.append(...coloured(indentedIfComplete(text)));
  return made;
}

function changed(divergences, call) {
  return divergences
    .filter((one) => one.call === call)
    .map(({ pointer, preferred }) => {
      const note = element("p", "divergence at ", "note");
      note.append(element("code", pointer || "the whole"), ": the model was about to write ", element("code", preferred));
      return note;
    });
}

function part(title, body, notes = [], kind = "") {
  const made = element("section", "", `part ${kind}`);
  made.append(element("h4", title), body, ...notes);
  return made;
}
