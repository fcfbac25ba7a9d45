// The form and the body of a chat-completions request, each made from the other.

import { $ } from "../common/dom.js";
import { recolour } from "../common/editor.js";
import { pretty } from "../common/json.js";
import { jsonError } from "./json_error.js";
import { fillMessages, readMessages } from "./messages.js";
import { showTemplate } from "./template.js";
import { toolNames, writeTools } from "./tools.js";

const written = (value) => (value === undefined ? "" : pretty(value));

const NUMBERS = {
  max_tokens: "max-tokens",
  temperature: "temperature",
  seed: "seed",
  reasoning_max_tokens: "reasoning-limit",
};
const FIELDS = new Set([
  ...["model", "messages", "tools", "tool_choice", "parallel_tool_calls", "response_format", "regex", "choice"],
  ...["reasoning_effort", "style", "chat_template", "stream", ...Object.keys(NUMBERS)],
]);
const DEFAULTS = { temperature: 0, max_tokens: 256 };
const CHOICES = { auto: "auto: the model decides", none: "none: no call", required: "required: a call" };

// Every text that should be JSON but is not: [{control, line, at, why}].
export function jsonErrors() {
  return [...document.querySelectorAll("#request [data-json]")]
    .filter((control) => !control.closest("[hidden]"))
    .map((control) => ({ control, ...jsonError(control.value) }))
    .filter(({ why }) => why);
}

// The body that the form makes; its JSON texts must be JSON.
export function readForm() {
  const body = { model: $("model").value || undefined, messages: readMessages() };
  body.tools = parsed($("tools").value);
  const choice = $("tool-choice").value;
  if (body.tools?.length) {
    if (choice in CHOICES) body.tool_choice = choice === "auto" ? undefined : choice;
    else body.tool_choice = callOf(choice.replace(/^call /, ""), body.tools);
    body.parallel_tool_calls = parsed($("parallel").value);
  }
  Object.assign(body, readAnswer($("format").value));
  body.reasoning_effort = $("effort").value || undefined;
  for (const [name, id] of Object.entries(NUMBERS)) body[name] = parsed($(id).value);
  body.style = $("style").value.trim() || undefined;
  body.chat_template = readTemplate();
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined));
}

function callOf(name, tools) {
  const type = tools.some((tool) => tool?.custom?.name === name) ? "custom" : "function";
  return { type, [type]: { name } };
}

function readAnswer(format) {
  switch (format) {
    case "json_object":
      return { response_format: { type: "json_object" } };
    case "json_schema": {
      const strict = $("strict").checked ? { strict: true } : {};
      const schema = parsed($("schema").value) ?? true;
      return { response_format: { type: "json_schema", json_schema: { name: "answer", schema, ...strict } } };
    }
    case "regex":
      return { regex: $("regex").value };
    case "choice":
      return { choice: $("choice").value.split("\n").filter((line) => line) };
    default:
      return {};
  }
}

function readTemplate() {
  if ($("template").value === "") return undefined;
  return { template: $("template-text").value, bos_token: $("bos").value, eos_token: $("eos").value };
}

const parsed = (text) => (text.trim() ? JSON.parse(text) : undefined);

// Shows a body, and returns the names of its fields that the form has no place for. What it leaves out is reset, except
// the model and the template.
export function fillForm(body) {
  fillMessages(body.messages);
  writeTools(body.tools);
  offerToolChoices();
  const { function: called, custom } = body.tool_choice ?? {};
  const choice = called ?? custom;
  $("tool-choice").value = choice ? `call ${choice.name}` : (body.tool_choice ?? "auto");
  $("parallel").value = body.parallel_tool_calls ?? "";
  const format = body.response_format?.type ?? ["regex", "choice"].find((name) => name in body) ?? "text";
  $("format").value = format;
  $("schema").value = written(body.response_format?.json_schema?.schema);
  recolour($("schema"));
  $("strict").checked = body.response_format?.json_schema?.strict ?? false;
  $("regex").value = body.regex ?? "";
  $("choice").value = (body.choice ?? []).join("\n");
  $("effort").value = body.reasoning_effort ?? "";
  for (const [name, id] of Object.entries(NUMBERS)) $(id).value = body[name] ?? DEFAULTS[name] ?? "";
  $("style").value = body.style ?? "";
  if (body.model) $("model").value = $("model").dataset.wanted = body.model; // the models may still be unknown
  if (body.chat_template) fillTemplate(body.chat_template);
  showWhatApplies();
  return Object.keys(body).filter((name) => !FIELDS.has(name));
}

function fillTemplate(given) {
  const { template, bos_token: bos, eos_token: eos } = typeof given === "string" ? { template: given } : given;
  $("template").value = "*";
  showTemplate(template, bos ?? "", eos ?? "");
}

// Offers the tools as choices; a chosen tool that no longer exists becomes "auto".
export function offerToolChoices() {
  const chosen = $("tool-choice").value;
  const options = Object.entries(CHOICES).map(([value, text]) => new Option(text, value));
  for (const name of toolNames()) options.push(new Option(`a call of ${name}`, `call ${name}`));
  $("tool-choice").replaceChildren(...options);
  $("tool-choice").value = options.some(({ value }) => value === chosen) ? chosen : "auto";
}

// Hides the fields that do not apply.
export function showWhatApplies() {
  for (const field of document.querySelectorAll("[data-for]")) field.hidden = field.dataset.for !== $("format").value;
  $("own-template").hidden = $("template").value === "";
}
