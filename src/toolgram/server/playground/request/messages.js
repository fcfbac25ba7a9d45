// The cards of the messages.

import { $ } from "../common/dom.js";
import { colourable } from "../common/editor.js";
import { pretty } from "../common/json.js";

const list = $("messages");
const card = $("message-card");

export function fillMessages(messages) {
  list.replaceChildren();
  messages.forEach(addMessage);
}

// A card for a message; fields without a control are kept in `rest`.
export function addMessage(message) {
  const item = card.content.cloneNode(true).firstElementChild;
  const { role, content, tool_calls: calls, tool_call_id: id, reasoning_content: reasoning, ...rest } = message;
  item.rest = rest;
  item.querySelector(".role").value = role;
  item.querySelector(".content").value = textOf(content);
  item.given = content;
  item.reasoned = Boolean(reasoning);
  item.querySelector(".reasoning").value = reasoning ?? "";
  item.querySelector(".calls").value = calls ? pretty(calls) : "";
  item.querySelector(".call-id").value = id ?? "";
  colourable(item.querySelector(".calls"));
  list.append(item);
  arrange();
  return item;
}

// The text of a content, which may be in parts; those without a text are named, and stay while nothing is changed.
function textOf(content) {
  if (!Array.isArray(content)) return content ?? "";
  return content.map((part) => part.text ?? `[${part.type}]`).join("\n");
}

export function readMessages() {
  return [...list.children].map((item) => {
    const role = item.querySelector(".role").value;
    const calls = item.querySelector(".calls").value;
    const id = item.querySelector(".call-id").value.trim();
    const reasoning = item.querySelector(".reasoning").value;
    const text = item.querySelector(".content").value;
    return {
      role,
      content: Array.isArray(item.given) && text === textOf(item.given) ? item.given : text,
      ...(role === "assistant" && reasoning && { reasoning_content: reasoning }),
      ...(role === "assistant" && calls.trim() && { tool_calls: JSON.parse(calls) }),
      ...(role === "tool" && id && { tool_call_id: id }),
      ...item.rest,
    };
  });
}

// Renumbers the cards, and shows in each the fields of its role.
export function arrange() {
  [...list.children].forEach((item, index) => {
    const role = item.querySelector(".role").value;
    const at = `/messages/${index}`;
    item.dataset.at = at;
    item.dataset.role = role;
    item.querySelector(".content").setAttribute("aria-label", `Content of message ${index + 1}, ${role}`);
    item.querySelector(".role").setAttribute("aria-label", `Role of message ${index + 1}`);
    item.querySelector(".remove").setAttribute("aria-label", `Remove message ${index + 1}`);
    for (const field of item.querySelectorAll("[data-part]")) field.dataset.at = `${at}/${field.dataset.part}`;
    item.querySelector('[data-part="reasoning_content"]').hidden = role !== "assistant" || !item.reasoned;
    item.querySelector('[data-part="tool_calls"]').hidden = role !== "assistant";
    item.querySelector(".reasoning").setAttribute("aria-label", `Reasoning of message ${index + 1}`);
    item.querySelector(".calls").setAttribute("aria-label", `Tool calls of message ${index + 1}, as JSON`);
    item.querySelector(".call-id").hidden = role !== "tool";
  });
}

export function removeMessage(item) {
  const next = item.nextElementSibling ?? item.previousElementSibling;
  item.remove();
  arrange();
  (next?.querySelector(".remove") ?? $("add-message")).focus();
}
