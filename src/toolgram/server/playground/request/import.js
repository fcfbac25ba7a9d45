// Tools from a document: the server reads it, and the tools that are ticked are added.

import { post } from "../common/api.js";
import { $, element } from "../common/dom.js";
import { recolour } from "../common/editor.js";
import { mcpServers } from "../common/mcp.js";
import { jsonError } from "./json_error.js";

const dialog = $("import-dialog");
const COMMAND = "toolgram tools list FILE --json";
const YAML = /^(openapi|swagger|tools|mcpServers)\s*:/m;
const YAML_WORD = "this is YAML, which is not read here: give it as JSON";
let found = [];
let known = new Set(); // names of tools that there are already
let settled = () => {};

// Resolves to the tools that are to be added, or to null; one of `names` takes the place of that tool.
export function importTools(names) {
  known = names;
  $("import-text").value = $("import-file").value = "";
  $("import-command").textContent = COMMAND;
  recolour($("import-text"));
  show([]);
  dialog.showModal();
  offerServers();
  return new Promise((resolve) => {
    settled = resolve;
  });
}

function show(tools) {
  found = tools;
  $("import-fault").textContent = "";
  $("import-found").hidden = !tools.length;
  $("import-count").textContent = `${tools.length} tools`;
  $("import-list").replaceChildren(...tools.map(row));
  count();
}

// The MCP servers that this server is configured with, which may have to be started before they list their tools.
async function offerServers() {
  const place = $("import-servers");
  place.replaceChildren();
  try {
    const servers = await mcpServers();
    place.replaceChildren(...servers.map(serverButton));
  } catch (error) {
    if (error.status === undefined) throw error;
    place.replaceChildren(element("p", error.message, "fault"));
  }
  $("import-mcp").hidden = !place.childElementCount;
}

function serverButton({ server_label: label, error, tools }) {
  if (error) return element("p", error, "fault");
  const button = element("button", `${label}: ${tools.length} tools`);
  button.type = "button";
  button.addEventListener("click", () => show(tools));
  return button;
}

function row(tool, at) {
  const { name, description = "" } = tool.function ?? tool.custom;
  const item = element("li");
  const label = element("label", "", "check");
  const box = element("input");
  Object.assign(box, { type: "checkbox", checked: true });
  box.dataset.tool = at;
  label.append(box, element("code", name), known.has(name) ? " (takes the place of the tool of this name)" : "");
  item.append(label, element("p", description.split("\n")[0], "about"));
  return item;
}

function chosen() {
  return [...$("import-list").querySelectorAll(":checked")].map((box) => found[Number(box.dataset.tool)]);
}

function count() {
  const { length } = chosen();
  $("import-add").disabled = !length;
  $("import-add").textContent = length ? `Add ${length === 1 ? "1 tool" : `${length} tools`}` : "Add";
}

async function read() {
  const text = $("import-text").value;
  const wrong = text.trim() ? jsonError(text) : { line: 1, why: "a document is expected here" };
  show([]);
  if (wrong) {
    $("import-fault").textContent = YAML.test(text) ? YAML_WORD : `line ${wrong.line}: this is not JSON: ${wrong.why}`;
    return;
  }
  $("import-read").disabled = true;
  try {
    const { tools } = await post("v1/tools/import", { document: JSON.parse(text) });
    show(tools);
    if (!tools.length) $("import-fault").textContent = "the document has no tools";
  } catch (error) {
    if (error.status === undefined) throw error;
    $("import-fault").textContent = error.message.replace(/^\/document: /, "");
  } finally {
    $("import-read").disabled = false;
  }
}

async function take(file) {
  if (file.name.endsWith(".py")) {
    show([]);
    $("import-command").textContent = COMMAND.replace("FILE", file.name);
    $("import-fault").textContent = "a Python file is not run here: print its tools with the command above, and paste that";
    return;
  }
  $("import-text").value = await file.text();
  recolour($("import-text"));
  await read();
}

$("import-read").addEventListener("click", read);
$("import-file").addEventListener("change", ({ target }) => target.files.length && take(target.files[0]));
$("import-list").addEventListener("change", count);
$("import-form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (!chosen().length) return;
  const tools = chosen();
  const resolve = settled;
  settled = () => {};
  dialog.close();
  resolve(tools);
});
$("import-cancel").addEventListener("click", () => dialog.close());
dialog.addEventListener("close", () => settled(null));
