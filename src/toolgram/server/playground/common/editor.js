// Text areas that hold JSON, in colours: the same text is shown behind the area, whose own text is transparent.

import { coloured } from "./json.js";

// Gives a text area its colours. Whoever sets its value calls `recolour` afterwards.
export function colourable(area) {
  const editor = document.createElement("div");
  const shown = document.createElement("pre");
  editor.className = "editor";
  shown.ariaHidden = "true";
  area.replaceWith(editor);
  editor.append(shown, area);
  area.addEventListener("input", () => recolour(area));
  area.addEventListener("scroll", () => follow(area));
  recolour(area);
}

export function recolour(area) {
  const shown = area.parentElement.querySelector(":scope > pre");
  shown?.replaceChildren(...coloured(area.value), "\n"); // a line break at the end needs a line
  if (shown) follow(area);
}

function follow(area) {
  const shown = area.parentElement.querySelector(":scope > pre");
  shown.scrollTop = area.scrollTop;
}
