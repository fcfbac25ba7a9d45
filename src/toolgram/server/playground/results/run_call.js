// A button that runs a call of an MCP server's tool, and puts what it answers into the field for its result.

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
  button.type = "button";
  told.role = "status";
  button.addEventListener("click", async () => {
    if (place.writes && !(await approved(place, call.function.arguments))) return;
    button.disabled = true;
    told.textContent = `${place.server_label} runs it …`;
    try {
      take(await called(place, call.function.arguments));
      told.textContent = "";
    } catch (error) {
      if (error.status === undefined) throw error;
      told.textContent = error.message;
    } finally {
      button.disabled = false;
    }
  });
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
