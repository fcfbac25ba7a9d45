// Asks for the server's API key.

import { key } from "./api.js";
import { $ } from "./dom.js";

const dialog = $("key-dialog");
const field = $("key-text");
let settled = () => {};

// Resolves to whether the key was changed; an empty one removes it.
export function askForKey(why = "") {
  $("key-why").textContent = why;
  field.value = key.get() ?? "";
  dialog.showModal();
  return new Promise((resolve) => {
    settled = resolve;
  });
}

$("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  key.set(field.value.trim());
  dialog.close("given");
});
$("key-cancel").addEventListener("click", () => dialog.close(""));
dialog.addEventListener("close", () => {
  field.value = "";
  settled(dialog.returnValue === "given");
  dialog.returnValue = "";
});
