// Asks for the server's API key.

import { key } from "./api.js";

const dialog = document.getElementById("key-dialog");
const field = document.getElementById("key-text");
let settled = () => {};

// Resolves to whether the key was changed; an empty one takes it away.
export function askForKey(why = "") {
  document.getElementById("key-why").textContent = why;
  field.value = key.get() ?? "";
  dialog.showModal();
  return new Promise((resolve) => {
    settled = resolve;
  });
}

document.getElementById("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  key.set(field.value.trim());
  dialog.close("given");
});
document.getElementById("key-cancel").addEventListener("click", () => dialog.close(""));
dialog.addEventListener("close", () => {
  field.value = "";
  settled(dialog.returnValue === "given");
  dialog.returnValue = "";
});
