// An answer as it streams: tokens, events, and the message that they make.

import { $, element } from "../common/dom.js";
import { partsOf } from "./message.js";
import { Tokens } from "./tokens.js";

const MOST_EVENTS = 2000;

export class Answer {
  message = { role: "assistant", content: "", reasoning_content: "", tool_calls: [] };
  finish = null;
  #usage = null;
  divergences = [];
  #began = performance.now();
  #tokens;

  constructor() {
    for (const id of ["figures", "message", "event-list"]) $(id).replaceChildren();
    this.#tokens = new Tokens();
    $("nothing-yet").hidden = $("no-events").hidden = true;
    $("answered").hidden = false;
    $("continue").hidden = true;
  }

  // Takes an event of the stream.
  take(chunk) {
    this.#usage = chunk.usage ?? this.#usage;
    const choice = chunk.choices[0];
    if (choice?.tokens) this.#tokens.add(choice.tokens);
    if (choice?.trace) this.#tokens.mark(choice.trace);
    if (choice?.tokens || choice?.trace) return;
    if (choice) this.#read(choice);
    this.#note(kindOf(chunk), choice ? (choice.finish_reason ?? choice.delta) : chunk.usage);
  }

  // The stream has ended for this reason: shows what it cost.
  end(reason) {
    const figures = {
      "finish reason": reason,
      "prompt tokens": this.#usage?.prompt_tokens,
      "completion tokens": this.#tokens.count,
      "forced tokens": this.#tokens.forced,
      "first sampled token": this.#tokens.began && this.#seconds(this.#tokens.began),
      "total time": this.#seconds(performance.now()),
    };
    const rows = Object.entries(figures).filter(([, value]) => value || value === 0);
    $("figures").replaceChildren(
      ...rows.map(([name, value]) => {
        const row = element("div");
        row.append(element("dt", name), element("dd", value));
        return row;
      }),
    );
    $("continue").hidden = !this.turn.length;
  }

  get summary() {
    return `${this.#tokens.count} tokens, ${this.#tokens.forced} of them forced`;
  }

  // What to add to the next request: this message, and a place for the result of each of its calls.
  get turn() {
    const { role, content, reasoning_content: reasoning, tool_calls: calls } = this.message;
    if (!content && !calls.length) return [];
    const said = { role, content, ...(reasoning && { reasoning_content: reasoning }) };
    const results = calls.map((call) => ({ role: "tool", tool_call_id: call.id, content: "" }));
    const kept = calls.map(({ incomplete: _, ...call }) => call);
    return [{ ...said, ...(kept.length && { tool_calls: kept }) }, ...results];
  }

  #seconds(moment) {
    return `${((moment - this.#began) / 1000).toFixed(2)} s`;
  }

  #read({ delta, finish_reason: reason, divergences }) {
    const { message } = this;
    this.finish = reason ?? this.finish;
    message.content += delta.content ?? "";
    message.reasoning_content += delta.reasoning_content ?? "";
    for (const { index, id, type, function: called, custom, incomplete } of delta.tool_calls ?? []) {
      const call = (message.tool_calls[index] ??= custom
        ? { id, type, custom: { name: custom.name, input: "" } }
        : { id, type, function: { name: called.name, arguments: "" } });
      if (custom) call.custom.input += custom.input ?? "";
      else if (call.function) call.function.arguments += called.arguments ?? "";
      if (incomplete) call.incomplete = true;
    }
    if (divergences) {
      this.divergences = divergences;
      this.#tokens.diverge(divergences);
    }
    $("message").replaceChildren(...partsOf(message, this.divergences));
  }

  #note(kind, value) {
    const list = $("event-list");
    const time = element("time", this.#seconds(performance.now()));
    const item = element("li");
    item.append(time, element("span", kind, "kind"), element("code", JSON.stringify(value)));
    list.append(item);
    if (list.childElementCount > MOST_EVENTS) list.firstElementChild.remove();
  }
}

function kindOf({ choices: [choice] }) {
  if (!choice) return "usage";
  if (choice.finish_reason) return "finish";
  const { content, reasoning_content: reasoning, tool_calls: calls } = choice.delta;
  if (calls) return calls[0].id ? "call" : "arguments";
  if (reasoning) return "reasoning";
  return content ? "content" : "begin";
}
