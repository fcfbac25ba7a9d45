// Short names for what every module needs.

export const $ = (id) => document.getElementById(id);

// An element with a text in it.
export function element(name, text = "", className = "") {
  const made = document.createElement(name);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}
