// A tool to be edited: its name, its description, its parameters. What has no field here is kept as it is.

import { $ } from "../common/dom.js";
import { recolour } from "../common/editor.js";
import { pretty } from "../common/json.js";

const dialog = $("tool-dialog");
const TYPES = ["string", "integer", "number", "boolean", "array", "object"];
let given = null; // the tool as it was
let taken = new Set(); // names of others
let settled = () => {};

// Resolves to the tool as it was edited, or to null; `null` is a new one, and `names` are those of others.
export function editTool(tool, names) {
  [given, taken] = [tool, names];
  const { name, description, strict, parameters, format } = tool?.function ?? tool?.custom ?? {};
  $("h-tool").textContent = tool ? `Tool ${name}` : "A new tool";
  $("tool-type").value = tool?.custom ? "custom" : "function";
  $("tool-name").value = name ?? "";
  $("tool-about").value = description ?? "";
  $("tool-strict").checked = strict ?? false;
  $("tool-format").value = format ? pretty(format) : "";
  recolour($("tool-format"));
  const { properties, required, type: _, ...kept } = parameters ?? {};
  const further = Object.keys(kept).join(", ");
  $("parameters-kept").textContent = further && `kept as they are: ${further}`;
  $("parameters").replaceChildren();
  for (const [key, schema] of Object.entries(properties ?? {})) addParameter(key, schema, required?.includes(key));
  $("tool-fault").textContent = "";
  showType();
  dialog.showModal();
  return new Promise((resolve) => {
    settled = resolve;
  });
}

function showType() {
  const custom = $("tool-type").value === "custom";
  $("function-part").hidden = custom;
  $("custom-part").hidden = !custom;
  for (const name of $("parameters").querySelectorAll(".name")) name.disabled = custom; // else it must be filled in
}

function addParameter(name = "", schema = { type: "string" }, required = true) {
  const row = $("parameter-row").content.cloneNode(true).firstElementChild;
  const plain = typeof schema === "object" && schema !== null;
  const { type, description, ...rest } = plain ? schema : {};
  const known = TYPES.includes(type);
  const further = plain ? { ...(!known && type !== undefined && { type }), ...rest } : schema;
  row.querySelector(".name").value = name;
  row.querySelector(".type").value = known ? type : "";
  row.querySelector(".required").checked = required;
  row.querySelector(".about").value = description ?? "";
  row.querySelector(".rest").value = plain && !Object.keys(further).length ? "" : JSON.stringify(further);
  $("parameters").append(row);
  return row;
}

// [name, schema] of each row. Throws what a person is to be told.
function readParameters() {
  return [...$("parameters").children].map((row) => {
    const name = row.querySelector(".name").value;
    const type = row.querySelector(".type").value;
    const description = row.querySelector(".about").value.trim();
    const text = row.querySelector(".rest").value.trim();
    const rest = text ? parsed(text, `the further keywords of ${name}`) : {};
    if (typeof rest !== "object" || rest === null) return [name, rest];
    return [name, { ...(type && { type }), ...(description && { description }), ...rest }];
  });
}

function parsed(text, what) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`${what} are not JSON: ${error.message}`);
  }
}

function readTool() {
  const name = $("tool-name").value.trim();
  if (taken.has(name)) throw new Error(`another tool is named ${name}`);
  const type = $("tool-type").value;
  const { function: called, custom, type: _, ...beside } = given ?? {};
  const held = without((type === "custom" ? custom : called) ?? {}, "name", "description", "strict", "parameters", "format");
  const description = $("tool-about").value.trim();
  const said = { name, ...(description && { description }), ...held };
  if (type === "custom") {
    const format = $("tool-format").value.trim();
    return { ...beside, type, custom: { ...said, ...(format && { format: parsed(format, "the keys of the format") }) } };
  }
  const strict = $("tool-strict").checked ? { strict: true } : {};
  return { ...beside, type, function: { ...said, ...strict, parameters: readSchema(called?.parameters) } };
}

function readSchema(before) {
  const rows = readParameters();
  const names = rows.map(([name]) => name);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) throw new Error(`two parameters are named ${twice}`);
  const boxes = [...$("parameters").querySelectorAll(".required")];
  const required = names.filter((_, at) => boxes[at].checked);
  const kept = without(before ?? {}, "type", "properties", "required");
  const properties = Object.fromEntries(rows);
  return { type: before?.type ?? "object", properties, ...(required.length && { required }), ...kept };
}

const without = (object, ...names) => Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)));

$("tool-type").addEventListener("change", showType);
$("add-parameter").addEventListener("click", () => addParameter().querySelector(".name").focus());
$("parameters").addEventListener("click", ({ target }) => {
  if (!target.matches(".remove")) return;
  target.closest("li").remove();
  $("add-parameter").focus();
});
$("tool-form").addEventListener("submit", (event) => {
  event.preventDefault();
  try {
    const tool = readTool();
    const resolve = settled;
    settled = () => {};
    dialog.close();
    resolve(tool);
  } catch (error) {
    $("tool-fault").textContent = error.message;
  }
});
$("tool-cancel").addEventListener("click", () => dialog.close());
dialog.addEventListener("close", () => settled(null));
