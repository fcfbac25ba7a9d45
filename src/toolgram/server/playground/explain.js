// What the request becomes: style, prompt, grammar, relaxations.

import { buttonTo } from "./faults.js";

const $ = (id) => document.getElementById(id);

export function showExplanation(told) {
  const found = told.style;
  $("style-found").replaceChildren("Style ", element("strong", found.name), `: ${found.why || found.about}`);
  const size = told.prompt_tokens === null ? `${told.prompt.length} characters` : `${told.prompt_tokens} tokens`;
  $("prompt-size").textContent = size;
  $("prompt-text").replaceChildren(
    ...told.prompt_parts.map(({ text, trusted }) => element("span", text, trusted ? "trusted" : "said")),
  );
  $("format-prompt").hidden = !told.format_prompt;
  $("format-prompt-text").textContent = told.format_prompt ?? "";
  $("stops").replaceChildren(...told.stop.map((stop) => element("code", JSON.stringify(stop).slice(1, -1))));
  $("grammar-text").textContent = told.grammar?.text ?? "none: any text may come of this request";
  showRelaxations(told.relaxations);
}

function showRelaxations(relaxations) {
  $("relaxation-count").textContent = relaxations.length || "";
  const items = relaxations.map(({ pointer, keyword, enforced }) => {
    const item = element("li");
    item.append(element("code", keyword), ` at `, element("code", pointer || "(root)"));
    const button = buttonTo(pointer);
    if (button) item.append(" ", button);
    item.append(element("p", `enforced: ${enforced}`));
    return item;
  });
  const none = element("li", "None: all that the schemas ask for is enforced exactly.", "empty");
  $("relaxation-list").replaceChildren(...(items.length ? items : [none]));
}

export function element(name, text = "", className = "") {
  const made = document.createElement(name);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}
