// Shows what is wrong at the field that it concerns.

import { $, element } from "../common/dom.js";
import { locate } from "./locate.js";

const banner = $("problem");

// Shows a fault at a place in the request; one without a field is shown only above the results.
export function showFault({ message, pointer = null, line = null, at = null }) {
  clearFaults();
  const found = pointer === null ? null : fieldOf(pointer);
  banner.replaceChildren(found ? `${found.name}: ${bare(message, pointer)}` : message);
  banner.hidden = false;
  if (!found) return;
  const { field, control, rest } = found;
  const place = at === null ? (lineTold(control, message) ?? locatedIn(control, rest)) : { start: at, end: at, line };
  open(control);
  const note = element("p", place ? `line ${place.line}: ${bare(message, pointer)}` : bare(message, pointer), "fault");
  note.id = "fault";
  if (field.matches("ol")) field.after(note); // a list holds only its items
  else field.append(note);
  control.setAttribute("aria-invalid", "true");
  control.setAttribute("aria-describedby", "fault");
  banner.append(" ", jump(control, place));
}

export function clearFaults() {
  banner.hidden = true;
  $("fault")?.remove();
  for (const control of document.querySelectorAll("[aria-invalid]")) {
    control.removeAttribute("aria-invalid");
    control.removeAttribute("aria-describedby");
  }
}

// A button that goes to a place in the request; null if the form has no field for it.
export function buttonTo(pointer) {
  const found = fieldOf(pointer);
  return found && jump(found.control, locatedIn(found.control, found.rest));
}

function jump(control, place) {
  const button = element("button", place ? `Show line ${place.line}` : "Show", "quiet");
  button.type = "button";
  button.addEventListener("click", () => {
    open(control);
    control.focus();
    if (!place) return;
    control.setSelectionRange(place.start, place.end);
    const height = parseFloat(getComputedStyle(control).lineHeight);
    control.scrollTop = Math.max(0, (place.line - 3) * height);
  });
  return button;
}

// Opens what a control may be folded away in.
function open(control) {
  const around = control.closest("details");
  if (around) around.open = true;
}

// The innermost field that holds the place, and the rest of the pointer, within that field's text.
function fieldOf(pointer) {
  const holds = (at) => pointer === at || pointer.startsWith(`${at}/`);
  const fields = [...document.querySelectorAll("[data-at]")]
    .filter((field) => holds(field.dataset.at) && !field.closest("[hidden]"))
    .sort((one, other) => other.dataset.at.length - one.dataset.at.length);
  for (const field of fields) {
    const control = field.querySelector("textarea, select, input");
    const rest = pointer.slice(field.dataset.at.length);
    const name = control?.getAttribute("aria-label") ?? control?.labels[0]?.textContent;
    if (control) return { field, control, rest, name };
  }
  return null;
}

function locatedIn(control, rest) {
  return control.matches("[data-json]") ? locate(control.value, rest) : null;
}

// The line of a template that the server's message names.
function lineTold(control, message) {
  const found = control.id === "template-text" && /chat template, line (\d+)/.exec(message);
  if (!found) return null;
  const line = Number(found[1]);
  const lines = control.value.split("\n");
  const start = lines.slice(0, line - 1).join("\n").length + (line > 1);
  return { start, end: start + (lines[line - 1] ?? "").length, line };
}

// The server's messages begin with the pointer, which the field already shows.
function bare(message, pointer) {
  return pointer && message.startsWith(`${pointer}: `) ? message.slice(pointer.length + 2) : message;
}
