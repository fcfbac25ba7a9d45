// The tools as a list, beside their JSON: the JSON is what counts, and the list is made from it.

import { $, element } from "../common/dom.js";
import { recolour } from "../common/editor.js";
import { pretty } from "../common/json.js";
import { importTools } from "./import.js";
import { jsonError } from "./json_error.js";
import { editTool } from "./tool_dialog.js";

const area = $("tools");

// The tools that the JSON holds; null where it is not a list.
export function readTools() {
  if (jsonError(area.value)) return null;
  const tools = area.value.trim() ? JSON.parse(area.value) : [];
  return Array.isArray(tools) ? tools : null;
}

export function toolNames() {
  const names = (readTools() ?? []).map(nameOf);
  return new Set(names.filter((name) => typeof name === "string" && name));
}

export function writeTools(tools) {
  area.value = tools?.length ? pretty(tools) : "";
  showTools();
}

export function showTools() {
  recolour(area);
  const tools = readTools();
  for (const id of ["add-tool", "import-tools"]) $(id).disabled = tools === null;
  const items = tools?.map(row) ?? [element("li", "The JSON below is no list of tools yet.", "empty")];
  $("tool-list").replaceChildren(...items);
}

const nameOf = (tool) => tool?.function?.name ?? tool?.custom?.name;

function row(tool, at) {
  const item = element("li", "", "tool");
  const name = nameOf(tool) ?? `tool ${at + 1}`;
  const said = element("div");
  const signature = element("p", "", "signature code");
  signature.append(element("strong", name), parametersOf(tool));
  said.append(signature, element("p", tool?.function?.description ?? tool?.custom?.description ?? "", "about"));
  item.append(said, button("Edit", `Edit ${name}`, "edit", at), button("✕", `Remove ${name}`, "remove", at));
  return item;
}

function button(text, label, kind, at) {
  const made = element("button", text, `quiet ${kind}`);
  made.type = "button";
  made.ariaLabel = label;
  made.dataset.tool = at;
  return made;
}

// The names of the parameters, those that may be left out with a question mark.
function parametersOf(tool) {
  if (tool?.custom) return "(text)";
  const { properties, required } = tool?.function?.parameters ?? {};
  if (typeof properties !== "object" || properties === null) return "()";
  const needed = Array.isArray(required) ? required : [];
  return `(${Object.keys(properties).map((key) => (needed.includes(key) ? key : `${key}?`)).join(", ")})`;
}

// The form is told by an event, as of what is typed.
function keep(tools, focused) {
  writeTools(tools);
  area.dispatchEvent(new Event("input", { bubbles: true }));
  (focused() ?? $("add-tool")).focus();
}

const editOf = (at) => () => $("tool-list").querySelector(`.edit[data-tool="${at}"]`);

$("tool-list").addEventListener("click", async ({ target }) => {
  if (!target.dataset.tool) return;
  const at = Number(target.dataset.tool);
  const tools = readTools();
  if (target.matches(".remove")) return keep(tools.toSpliced(at, 1), editOf(Math.min(at, tools.length - 2)));
  const others = new Set(tools.toSpliced(at, 1).map(nameOf));
  const edited = await editTool(tools[at], others);
  if (edited) keep(tools.with(at, edited), editOf(at));
});

$("add-tool").addEventListener("click", async () => {
  const tools = readTools();
  const made = await editTool(null, new Set(tools.map(nameOf)));
  if (made) keep([...tools, made], editOf(tools.length));
});

$("import-tools").addEventListener("click", async () => {
  const tools = readTools();
  const found = await importTools(new Set(tools.map(nameOf)));
  if (!found) return;
  const names = new Set(found.map(nameOf));
  keep([...tools.filter((tool) => !names.has(nameOf(tool))), ...found], () => $("import-tools"));
});
