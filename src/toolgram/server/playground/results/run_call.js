// A button that runs a call of an MCP server's tool, and stops it; what it answers goes into the field for its result.

import { $, element } from "../common/dom.js";
import { coloured, indentedIfComplete } from "../common/json.js";
import { called, placeOf } from "../common/mcp.js";

const dialog = $("approve-dialog");
let settled = () => {};

// What stands below the field of a call's result, and gives it to `take`; nothing where the tool cannot be run.
export function runButton(call, take) {
  const place = call?.function && placeOf(call.function.name);
  if (!place) return [];
  const button = element("button", `Run ${place.name}`);
  const told = element("span", "", "hint");
  let running = null;
  button.type = "button";
  told.role = "status";
  button.addEventListener("click", () => (running ? running.abort() : run()));

  async function run() {
    if (place.writes && !(await approved(place, call.function.arguments))) return;
    running = new AbortController();
    button.textContent = `Stop ${place.name}`;
    told.textContent = `${place.server_label} runs it …`;
    try {
      take(await called(place, call.function.arguments, running.signal));
      told.textContent = "";
    } catch (error) {
      if (error.name === "AbortError") told.textContent = "stopped; what it did before is done";
      else if (error.status === undefined) throw error;
      else told.textContent = error.message;
    } finally {
      running = null;
      button.textContent = `Run ${place.name}`;
    }
  }

  const row = element("div", "", "row");
  row.append(button, told);
  return [row];
}

function approved({ server_label: label, name }, text) {
  $("approve-what").textContent = `${name} of ${label}`;
  $("approve-arguments").replaceChildren(...coloured(indentedIfComplete(text)));
  dialog.returnValue = "";
  dialog.showModal();
  $("approve-no").focus();
  return new Promise((resolve) => {
    settled = resolve;
  });
}

dialog.addEventListener("close", () => settled(dialog.returnValue === "run"));
