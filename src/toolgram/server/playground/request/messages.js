// The cards of the messages.

import { illustrated, imagesOf, isImage, picture, textOf } from "../common/content.js";
import { $, element } from "../common/dom.js";
import { colourable } from "../common/editor.js";
import { pretty } from "../common/json.js";
import { showFault } from "./faults.js";
import { partsOfFiles } from "./images.js";

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
  item.images = item.hadImages = imagesOf(content);
  item.reasoned = Boolean(reasoning);
  item.querySelector(".reasoning").value = reasoning ?? "";
  item.querySelector(".calls").value = calls ? pretty(calls) : "";
  item.querySelector(".call-id").value = id ?? "";
  colourable(item.querySelector(".calls"));
  showImages(item);
  list.append(item);
  arrange();
  return item;
}

// The content as it was given while nothing of it is changed: parts may be of kinds that there is no field for.
function contentOf(item) {
  const text = item.querySelector(".content").value;
  const { given, hadImages } = item;
  const images = item.querySelector(".attach").hidden ? [] : item.images;
  const kept = Array.isArray(given) && text === textOf(given);
  if (kept && item.images === hadImages) return given;
  if (kept) return [...given.filter((part) => !isImage(part)), ...images];
  return illustrated(text, images);
}

export function readMessages() {
  return [...list.children].map((item) => {
    const role = item.querySelector(".role").value;
    const calls = item.querySelector(".calls").value;
    const id = item.querySelector(".call-id").value.trim();
    const reasoning = item.querySelector(".reasoning").value;
    return {
      role,
      content: contentOf(item),
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
    item.querySelector(".attach").hidden = !["user", "tool"].includes(role);
    item.querySelector(".attach").setAttribute("aria-label", `Add an image to message ${index + 1}`);
    item.querySelector(".images").hidden = item.querySelector(".attach").hidden;
    [...item.querySelectorAll(".images li")].forEach((shown, at) => {
      const name = `image ${at + 1} of message ${index + 1}`;
      shown.querySelector("img").alt = name;
      shown.querySelector("button").ariaLabel = `Remove ${name}`;
    });
  });
}

function thumbnail(part, at) {
  const made = element("li");
  const button = element("button", "✕", "quiet");
  button.type = "button";
  button.dataset.image = at;
  made.append(picture(part, ""), button);
  return made;
}

function showImages(item) {
  item.querySelector(".images").replaceChildren(...item.images.map(thumbnail));
}

function offer(target, files) {
  const item = target.closest(".message");
  if (item && !item.querySelector(".attach").hidden) attach(item, files);
}

async function attach(item, files) {
  try {
    const parts = await partsOfFiles(files);
    changeImages(item, [...item.images, ...parts]);
  } catch (error) {
    showFault({ message: error.message, pointer: `${item.dataset.at}/content` });
  }
}

// The form is told by an event, as of what is typed.
function changeImages(item, images) {
  item.images = images;
  showImages(item);
  arrange();
  item.dispatchEvent(new Event("input", { bubbles: true }));
}

export function removeMessage(item) {
  const next = item.nextElementSibling ?? item.previousElementSibling;
  item.remove();
  arrange();
  (next?.querySelector(".remove") ?? $("add-message")).focus();
}

list.addEventListener("click", ({ target }) => {
  const item = target.closest(".message");
  if (target.matches(".attach")) item.querySelector(".image-file").click();
  if (!target.dataset.image) return;
  changeImages(item, item.images.toSpliced(Number(target.dataset.image), 1));
  item.querySelector(".attach").focus();
});
list.addEventListener("change", async ({ target }) => {
  if (!target.matches(".image-file") || !target.files.length) return;
  await attach(target.closest(".message"), target.files);
  target.value = "";
});
list.addEventListener("paste", (event) => {
  const { files, types } = event.clipboardData;
  if (!files.length || types.includes("text/plain")) return; // cells of a table are a text, and a picture of it
  event.preventDefault();
  offer(event.target, files);
});
list.addEventListener("drop", (event) => {
  const { files } = event.dataTransfer;
  if (!files.length) return;
  event.preventDefault(); // or else the page is left for the file
  offer(event.target, files);
});
list.addEventListener("dragover", (event) => event.dataTransfer.types.includes("Files") && event.preventDefault());
