// The raw text, token by token: which were forced, and where the grammar cut in before what the model preferred.

import { $, element } from "../common/dom.js";

const MOST = 0.5; // a cut is where more of the probability than this was ruled out
const BEFORE = 24; // characters of the text before a cut

export class Tokens {
  count = 0;
  forced = 0;
  text = "";
  began = null; // when the first token was sampled
  #spans = [];
  #offsets = []; // the characters before each token
  #cuts = new Map(); // by the position of the token
  #length = 0; // in characters, where text.length counts UTF-16
  #decoder = new TextDecoder(); // a character may be spread over tokens

  constructor() {
    $("tokens").replaceChildren();
    $("cut-list").replaceChildren();
    $("cuts").hidden = $("cut-legend").hidden = true;
  }

  add(tokens) {
    for (const token of tokens) {
      if (!token.forced) this.began ??= performance.now();
      const text = token.bytes ? this.#decoder.decode(Uint8Array.from(token.bytes), { stream: true }) : token.text;
      const span = element("span", text, token.forced ? "token forced" : "token");
      const likely = token.logprob === undefined ? "" : `, ${percent(Math.exp(token.logprob))} likely`;
      span.title = `${JSON.stringify(token.text)}: ${token.forced ? "forced by the grammar" : `sampled${likely}`}`;
      this.#offsets.push(this.#length);
      this.#length += [...text].length;
      this.text += text;
      this.#spans.push(span);
      this.count++;
      this.forced += token.forced;
      $("tokens").append(span);
    }
  }

  // Marks where the model alone would have written another token.
  mark(trace) {
    const cuts = trace.filter(({ position, removed }) => removed > MOST && this.#spans[position]);
    for (const { position, preferred, removed } of cuts) {
      const span = this.#spans[position];
      span.classList.add("cut");
      span.title += `; the model alone would have written ${JSON.stringify(preferred)}, the grammar ruled out ${percent(removed)}`;
      this.#cuts.set(position, { preferred, removed, pointer: null });
    }
    if (cuts.length) this.#list();
  }

  // Marks the values that became others than the model was about to write.
  diverge(divergences) {
    for (const { pointer, preferred, removed, offset } of divergences) {
      const position = this.#offsets.findLastIndex((at) => at <= offset);
      const span = this.#spans[position];
      if (!span) continue;
      span.classList.add("cut", "diverged");
      this.#cuts.set(position, { preferred, removed, pointer });
    }
    this.#list();
  }

  #list() {
    const cuts = [...this.#cuts].sort(([one], [other]) => one - other);
    $("cuts").hidden = $("cut-legend").hidden = !cuts.length;
    $("cut-count").textContent = cuts.length;
    $("cut-list").replaceChildren(...cuts.map(([position, cut]) => this.#item(position, cut)));
  }

  #item(position, { preferred, removed, pointer }) {
    const item = element("li");
    const before = [...this.text].slice(0, this.#offsets[position]).slice(-BEFORE).join("");
    const written = this.#spans[position].textContent;
    item.append(element("code", visible(before), "before"), element("code", visible(written), "written"));
    item.append(" instead of ", element("code", visible(preferred)), `, ${percent(removed)} ruled out`);
    if (pointer !== null) item.append(" ", element("strong", `divergence at ${pointer || "the whole answer"}`));
    return item;
  }
}

const percent = (share) => `${(100 * share).toFixed(1)} %`;

// White space as JSON writes it.
const visible = (text) => JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"');
