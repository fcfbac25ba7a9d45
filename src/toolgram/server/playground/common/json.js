// JSON as a person would write it, what fits on one line on one line; and JSON in colours.

const WIDTH = 68;
const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;
const PIECE = /("(?:[^"\\\n]|\\.)*"?)(?=(\s*:)?)|-?\d[\d.eE+-]*|\b(?:true|false|null)\b/g;
const MOST_COLOURED = 60_000; // characters: colours of more would be late

// The value in JSON.
export function pretty(value) {
  return indented(JSON.stringify(value));
}

// A text of JSON in other white space; numbers and escapes stay as they are written. Throws for what is not JSON.
export function indented(text) {
  JSON.parse(text);
  const tokens = text.match(TOKEN);
  let at = 0;
  const value = () => {
    const open = tokens[at++];
    if (open !== "{" && open !== "[") return open;
    const close = open === "{" ? "}" : "]";
    const items = [];
    while (tokens[at] !== close) {
      if (tokens[at] === ",") at++;
      let key = "";
      if (open === "{") {
        key = `${tokens[at]}: `;
        at += 2;
      }
      items.push([key, value()]);
    }
    at++;
    return { open, close, items };
  };
  return spread(value(), "", 0);
}

// The text indented, or as it is while it is not complete, or no JSON.
export function indentedIfComplete(text) {
  try {
    return indented(text);
  } catch {
    return text;
  }
}

// Nodes that show a text of JSON in colours, complete or not.
export function coloured(text) {
  if (text.length > MOST_COLOURED) return [text];
  const nodes = [];
  let end = 0;
  for (const found of text.matchAll(PIECE)) {
    if (found.index > end) nodes.push(text.slice(end, found.index));
    const span = document.createElement("span");
    span.textContent = found[0];
    span.className = `json-${kindOf(found)}`;
    nodes.push(span);
    end = found.index + found[0].length;
  }
  nodes.push(text.slice(end));
  return nodes;
}

function kindOf([text, string, colon]) {
  if (string) return colon ? "key" : "string";
  return /^[-\d]/.test(text) ? "number" : "word";
}

function spread(node, indent, before) {
  const line = flat(node);
  if (typeof node === "string" || !node.items.length || before + line.length <= WIDTH) return line;
  const deeper = `${indent}  `;
  const items = node.items.map(([key, item]) => deeper + key + spread(item, deeper, deeper.length + key.length));
  return `${node.open}\n${items.join(",\n")}\n${indent}${node.close}`;
}

function flat(node) {
  if (typeof node === "string") return node;
  return node.open + node.items.map(([key, item]) => key + flat(item)).join(", ") + node.close;
}
