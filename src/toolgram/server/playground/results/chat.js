// The conversation as a chat: what was said, the answer as it comes, results to be filled in, and a place to go on.

import { imagesOf, picture, textOf } from "../common/content.js";
import { $, element } from "../common/dom.js";
import { partsOf, shown } from "./message.js";
import { runButton } from "./run_call.js";

const list = $("turns");
let drawn = ""; // what is shown, as JSON

// Shows messages, and below them those of the answer that is not in the form yet; `running` while it streams.
export function showChat(messages, answer, running) {
  const turn = answer?.turn ?? [];
  const now = JSON.stringify([messages, answer?.message, running]);
  if (now === drawn) return; // or else a field would lose its focus
  drawn = now;
  const whole = [...messages, ...turn];
  const open = running ? whole.length : firstOpen(whole);
  const typed = new Map(readChat().results);
  list.replaceChildren(...messages.map((_, at) => bubble(whole, at, at >= open)));
  if (answer && (running || turn.length || answer.message.reasoning_content)) {
    list.append(element("li", "", "turn answering"));
    showAnswer(answer, running);
  }
  const results = whole.slice(messages.length + 1);
  results.forEach((result) => (result.content = typed.get(result.tool_call_id ?? "") ?? ""));
  list.append(...results.map((_, at) => bubble(whole, messages.length + 1 + at, !running)));
  if (running) return;
  $("chat-text").placeholder = open < whole.length ? "the results go with it, or alone" : "go on as the user";
}

// Shows the answer as far as it has come.
export function showAnswer(answer, running) {
  const item = list.querySelector(".answering");
  if (!item) return;
  item.dataset.role = "assistant";
  item.replaceChildren(element("h4", "assistant"), ...partsOf(answer.message, answer.divergences));
  item.ariaBusy = String(running);
  item.scrollIntoView({ block: "nearest" });
}

// What is said here: the results in their order, and the text, which may be empty.
export function readChat() {
  const results = [...list.querySelectorAll("textarea")].map((area) => [area.dataset.call, area.value]);
  return { results, text: $("chat-text").value.trim() };
}

// Where the results at the end begin, which may still be changed.
function firstOpen(messages) {
  return messages.findLastIndex(({ role }) => role !== "tool") + 1;
}

function bubble(messages, at, open) {
  const { role, content, tool_call_id: id, ...rest } = messages[at];
  const item = element("li", "", "turn");
  item.dataset.role = role;
  const call = role === "tool" ? callOf(messages.slice(0, at), id) : null;
  const name = role === "tool" ? `result of ${(call?.function ?? call?.custom)?.name ?? id ?? "a call"}` : role;
  item.append(element("h4", name));
  const text = textOf(content);
  item.append(...imagesOf(content).map((part, number) => picture(part, `image ${number + 1}`)));
  if (role === "tool" && open) item.append(resultField(name, id, text), ...runButton(call, (result) => fillIn(id, result)));
  else if (role === "assistant") item.append(...partsOf({ content: text, ...rest }));
  else if (text) item.append(shown(text));
  return item;
}

function resultField(name, id, text) {
  const area = element("textarea");
  Object.assign(area, { rows: 2, value: text, ariaLabel: name, placeholder: "what the tool answers" });
  area.className = "code";
  area.spellcheck = false;
  area.dataset.call = id ?? "";
  return area;
}

// Puts a result into its field, which may be another one than when it was asked for.
function fillIn(id, result) {
  const area = [...list.querySelectorAll("textarea")].find(({ dataset }) => dataset.call === (id ?? ""));
  if (!area) return;
  area.value = result;
  area.focus();
}

function callOf(messages, id) {
  const calls = messages.flatMap(({ tool_calls: made }) => made ?? []);
  return calls.findLast((call) => call.id === id);
}
