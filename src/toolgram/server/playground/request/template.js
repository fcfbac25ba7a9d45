// The chat template: the model's own, one of these to be changed, or one of a file.

import { get } from "../common/api.js";
import { $ } from "../common/dom.js";
import { showFault } from "./faults.js";

// The models of the server, which the form offers, and their templates.
export async function offerModels() {
  const { data } = await get("v1/models");
  const chosen = [$("model").dataset.wanted, $("model").value].find((name) => data.some(({ id }) => id === name));
  $("model").replaceChildren(...data.map(({ id }) => new Option(id, id)));
  if (chosen) $("model").value = chosen;
  const template = $("template").value;
  const others = data.map(({ id }) => new Option(`of ${id}, to be changed`, id));
  $("template").replaceChildren(new Option("the model's own", ""), ...others, new Option("another one", "*"));
  if ([...$("template").options].some(({ value }) => value === template)) $("template").value = template;
}

export async function takeTemplate() {
  const from = $("template").value;
  if (from === "" || from === "*") return;
  const { chat_template: given } = await get(`v1/models/${encodeURIComponent(from)}`);
  showTemplate(given.template, given.bos_token, given.eos_token);
}

export function showTemplate(source, bos, eos) {
  $("template-text").value = source;
  $("bos").value = bos;
  $("eos").value = eos;
}

// A template's file, or a tokenizer's configuration with the template and the tokens in it.
export async function readTemplateFile(file) {
  const text = await file.text();
  if (!file.name.endsWith(".json")) return showTemplate(text, $("bos").value, $("eos").value);
  try {
    const { chat_template: given, bos_token: bos, eos_token: eos } = JSON.parse(text);
    const source = Array.isArray(given) ? (given.find(({ name }) => name === "default") ?? given[0]).template : given;
    const token = (value) => value?.content ?? value ?? "";
    showTemplate(source ?? "", token(bos), token(eos));
  } catch (error) {
    showFault({ message: `${file.name} is no tokenizer configuration: ${error.message}`, pointer: "/chat_template" });
  }
}
