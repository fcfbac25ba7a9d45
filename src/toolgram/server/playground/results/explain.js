// What the request becomes: style, prompt, grammar, relaxations.

import { $, element } from "../common/dom.js";
import { buttonTo } from "../request/faults.js";

export function showExplanation(given) {
  const found = given.style;
  $("style-found").replaceChildren("Style ", element("strong", found.name), `: ${found.why || found.about}`);
  const size = given.prompt_tokens === null ? `${given.prompt.length} characters` : `${given.prompt_tokens} tokens`;
  $("prompt-size").textContent = size;
  $("prompt-text").replaceChildren(...coloured(given));
  for (const id of ["format-prompt", "asked-legend"]) $(id).hidden = !given.format_prompt;
  $("format-prompt-text").textContent = given.format_prompt ?? "";
  $("stops").replaceChildren(...given.stop.map((stop) => element("code", JSON.stringify(stop).slice(1, -1))));
  $("grammar-text").textContent = given.grammar?.text ?? "none: this request allows any text";
  showRelaxations(given.relaxations);
}

// The pieces of the prompt: of the template, of the conversation, and of the format prompt that was inserted into it.
function coloured({ prompt, prompt_parts: parts, format_prompt: format }) {
  const begin = format ? prompt.indexOf(format) : -1;
  const end = begin < 0 ? -1 : begin + format.length;
  const spans = [];
  let at = 0;
  for (const { text, trusted } of parts) {
    const next = at + text.length;
    const cuts = [at, ...[begin, end].filter((cut) => at < cut && cut < next), next];
    for (let i = 1; i < cuts.length; i++) {
      const [from, to] = [cuts[i - 1], cuts[i]];
      const kind = trusted ? "trusted" : begin <= from && to <= end ? "asked" : "said";
      spans.push(element("span", prompt.slice(from, to), kind));
    }
    at = next;
  }
  return spans;
}

function showRelaxations(relaxations) {
  $("relaxation-count").textContent = relaxations.length || "";
  const items = relaxations.map(({ pointer, keyword, enforced, kind }) => {
    const item = element("li");
    item.append(element("code", keyword), ` at `, element("code", pointer || "(root)"));
    const button = buttonTo(`${pointer}/${keyword}`); // or whatever is around it, if there is no such place
    if (button) item.append(" ", button);
    item.append(element("p", `${kind === "stricter" ? "stricter than asked" : "not enforced"}: ${enforced}`));
    return item;
  });
  const none = element("li", "None: all that the schemas ask for is enforced exactly.", "empty");
  $("relaxation-list").replaceChildren(...(items.length ? items : [none]));
}
