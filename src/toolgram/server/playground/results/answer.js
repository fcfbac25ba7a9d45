// An answer as it streams: tokens, events, and the message that they make.

import { $, element } from "../common/dom.js";
import { pretty } from "../common/json.js";

const MOST_EVENTS = 2000;

export class Answer {
  message = { role: "assistant", content: "", reasoning: "", tool_calls: [] };
  finish = null;
  #usage = null;
  #tokens = 0;
  #forced = 0;
  #decoder = new TextDecoder(); // a character may be spread over tokens
  #began = performance.now();
  #chosen = null; // when the model chose its first token, having read the prompt

  constructor() {
    for (const id of ["tokens", "figures", "message", "event-list"]) $(id).replaceChildren();
    $("nothing-yet").hidden = $("no-events").hidden = true;
    $("answered").hidden = false;
    $("continue").hidden = true;
  }

  // Takes an event of the stream.
  take(chunk) {
    this.#usage = chunk.usage ?? this.#usage;
    const choice = chunk.choices[0];
    if (choice?.tokens) return this.#written(choice.tokens);
    if (choice) {
      this.#read(choice.delta);
      this.finish = choice.finish_reason ?? this.finish;
    }
    this.#note(kindOf(chunk), choice ? (choice.finish_reason ?? choice.delta) : chunk.usage);
  }

  // The stream has ended for this reason: shows what it cost.
  end(reason) {
    const figures = {
      ended: reason,
      prompt: this.#usage && `${this.#usage.prompt_tokens} tokens`,
      answer: `${this.#tokens} tokens`,
      forced: `${this.#forced} of them`,
      "first choice": this.#chosen && `after ${this.#seconds(this.#chosen)}`,
      end: `after ${this.#seconds(performance.now())}`,
    };
    const rows = Object.entries(figures).filter(([, value]) => value);
    $("figures").replaceChildren(
      ...rows.map(([name, value]) => {
        const row = element("div");
        row.append(element("dt", name), element("dd", value));
        return row;
      }),
    );
    $("continue").hidden = !(this.message.content || this.message.tool_calls.length);
  }

  get summary() {
    return `${this.#tokens} tokens, ${this.#forced} of them forced`;
  }

  // What to add to the next request: this message, and a place for the result of each of its calls.
  get turn() {
    const { role, content, tool_calls: calls } = this.message;
    if (!calls.length) return [{ role, content }];
    const results = calls.map((call) => ({ role: "tool", tool_call_id: call.id, content: "" }));
    return [{ role, content, tool_calls: calls }, ...results];
  }

  #seconds(moment) {
    return `${((moment - this.#began) / 1000).toFixed(2)} s`;
  }

  #written(tokens) {
    for (const token of tokens) {
      if (!token.forced) this.#chosen ??= performance.now();
      const text = token.bytes ? this.#decoder.decode(Uint8Array.from(token.bytes), { stream: true }) : token.text;
      const span = element("span", text, token.forced ? "token forced" : "token");
      const likely = token.logprob === undefined ? "" : `, ${(100 * Math.exp(token.logprob)).toFixed(1)} % likely`;
      span.title = `${JSON.stringify(token.text)} — ${token.forced ? "forced by the grammar" : `chosen${likely}`}`;
      $("tokens").append(span);
      this.#tokens++;
      this.#forced += token.forced;
    }
  }

  #read(delta) {
    const { message } = this;
    message.content += delta.content ?? "";
    message.reasoning += delta.reasoning_content ?? "";
    for (const { index, id, type, function: called, custom } of delta.tool_calls ?? []) {
      const call = (message.tool_calls[index] ??= custom
        ? { id, type, custom: { name: custom.name, input: "" } }
        : { id, type, function: { name: called.name, arguments: "" } });
      if (custom) call.custom.input += custom.input ?? "";
      else call.function.arguments += called.arguments ?? "";
    }
    $("message").replaceChildren(...shown(message));
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

function shown({ content, reasoning, tool_calls: calls }) {
  const parts = [];
  if (reasoning) parts.push(part("Reasoning", element("p", reasoning, "text")));
  if (content) parts.push(part("Content", element("p", content, "text")));
  for (const call of calls) {
    const name = (call.function ?? call.custom).name;
    const text = call.function ? indented(call.function.arguments) : call.custom.input;
    const title = part("Call", element("pre", text));
    title.firstElementChild.append(" ", element("code", name), " ", element("small", call.id ?? ""));
    parts.push(title);
  }
  return parts;
}

function part(title, body) {
  const made = element("section", "", "part");
  made.append(element("h4", title), body);
  return made;
}

// The arguments over several lines, once they are complete.
function indented(text) {
  try {
    return pretty(JSON.parse(text));
  } catch {
    return text; // not complete yet
  }
}
