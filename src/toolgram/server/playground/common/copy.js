// Copies the text of an element, or selects it if the browser does not let pages copy. Returns what was done, in words.

export async function copied(element) {
  try {
    await navigator.clipboard.writeText(element.value ?? element.textContent);
    return "copied";
  } catch {
    if (element.select) element.select();
    else getSelection().selectAllChildren(element);
    return "selected: copy it with Ctrl C";
  }
}
