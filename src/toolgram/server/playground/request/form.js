// The form and the body of a chat-completions request, each made from the other.

import { $ } from "../common/dom.js";
import { pretty } from "../common/json.js";
import { jsonError } from "./json_error.js";
import { addMessage, clearMessages, readMessages } from "./messages.js";

const written = (value) => (value === undefined ? "" : pretty(value));

const NUMBERS = {
  max_tokens: "max-tokens",
  temperature: "temperature",
  seed: "seed",
  reasoning_max_tokens: "reasoning-limit",
};
const DEFAULTS = { temperature: 0, max_tokens: 256 };
const CHOICES = { auto: "the model decides", none: "no call", required: "a call" };

// Every text that should be JSON but is not: [{control, line, at, why}].
export function jsonErrors() {
  return [...document.querySelectorAll("#request [data-json]")]
    .filter((control) => control.checkVisibility())
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

// Shows a body; what it leaves out is reset, except the model and the template.
export function fillForm(body) {
  clearMessages();
  body.messages.forEach(addMessage);
  $("tools").value = written(body.tools);
  offerToolChoices();
  $("tool-choice").value = body.tool_choice ?? "auto";
  $("parallel").value = body.parallel_tool_calls ?? "";
  const format = body.response_format?.type ?? ["regex", "choice"].find((name) => name in body) ?? "text";
  $("format").value = format;
  $("schema").value = written(body.response_format?.json_schema.schema);
  $("strict").checked = body.response_format?.json_schema?.strict ?? false;
  $("regex").value = body.regex ?? "";
  $("choice").value = (body.choice ?? []).join("\n");
  $("effort").value = body.reasoning_effort ?? "";
  for (const [name, id] of Object.entries(NUMBERS)) $(id).value = body[name] ?? DEFAULTS[name] ?? "";
  $("style").value = body.style ?? "";
  showWhatApplies();
}

// Offers the tools as choices; a chosen tool that no longer exists becomes "auto".
export function offerToolChoices() {
  const chosen = $("tool-choice").value;
  const options = Object.entries(CHOICES).map(([value, text]) => new Option(text, value));
  for (const name of toolNames()) options.push(new Option(`a call of ${name}`, `call ${name}`));
  $("tool-choice").replaceChildren(...options);
  $("tool-choice").value = options.some(({ value }) => value === chosen) ? chosen : "auto";
}

function toolNames() {
  if (jsonError($("tools").value)) return [];
  const tools = parsed($("tools").value);
  const names = Array.isArray(tools) ? tools.map((tool) => tool?.function?.name ?? tool?.custom?.name) : [];
  return new Set(names.filter((name) => typeof name === "string" && name));
}

// Hides the fields that do not apply.
export function showWhatApplies() {
  for (const field of document.querySelectorAll("[data-for]")) field.hidden = field.dataset.for !== $("format").value;
  $("own-template").hidden = $("template").value === "";
}
