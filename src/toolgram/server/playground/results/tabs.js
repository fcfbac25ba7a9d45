// Tabs, by mouse and arrow keys, following the ARIA practices.

import { $ } from "../common/dom.js";

const tabs = [...document.querySelectorAll('[role="tab"]')];

export function showTab(id) {
  for (const tab of tabs) {
    const chosen = tab.id === `tab-${id}`;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
    $(tab.getAttribute("aria-controls")).hidden = !chosen;
  }
}

export const shownTab = () => idOf(tabs.find((tab) => tab.ariaSelected === "true"));

const idOf = (tab) => tab.id.replace("tab-", "");

for (const [index, tab] of tabs.entries()) {
  tab.addEventListener("click", () => showTab(idOf(tab)));
  tab.addEventListener("keydown", ({ key }) => {
    const steps = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: -1 };
    if (!(key in steps)) return;
    const next = tabs.at(steps[key] % tabs.length);
    showTab(idOf(next));
    next.focus();
  });
}
