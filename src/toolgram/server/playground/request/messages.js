// The cards of the messages.

import { $ } from "../common/dom.js";
import { pretty } from "../common/json.js";

const list = $("messages");
const card = $("message-card");

export function clearMessages() {
  list.replaceChildren();
}

// A card for a message; fields without a control are kept in `rest`.
export function addMessage(message) {
  const item = card.content.cloneNode(true).firstElementChild;
  const { role, content, tool_calls: calls, tool_call_id: id, ...rest } = message;
  item.rest = rest;
  item.querySelector(".role").value = role;
  item.querySelector(".content").value = content ?? "";
  item.querySelector(".calls").value = calls ? pretty(calls) : "";
  item.querySelector(".call-id").value = id ?? "";
  list.append(item);
  arrange();
  return item;
}

export function readMessages() {
  return [...list.children].map((item) => {
    const role = item.querySelector(".role").value;
    const calls = item.querySelector(".calls").value;
    const id = item.querySelector(".call-id").value.trim();
    return {
      role,
      content: item.querySelector(".content").value,
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
    item.querySelector('[data-part="tool_calls"]').hidden = role !== "assistant";
    item.querySelector(".call-id").hidden = role !== "tool";
  });
}

export function removeMessage(item) {
  const next = item.nextElementSibling ?? item.previousElementSibling;
  item.remove();
  arrange();
  (next?.querySelector(".remove") ?? $("add-message")).focus();
}
