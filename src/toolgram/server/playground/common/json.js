// JSON as a person would write it: what fits on one line is on one line.

const WIDTH = 64;

export function pretty(value, indent = "") {
  const line = flat(value);
  if (indent.length + line.length <= WIDTH || typeof value !== "object" || value === null) return line;
  const deeper = `${indent}  `;
  const parts = Array.isArray(value)
    ? value.map((item) => deeper + pretty(item, deeper))
    : Object.entries(value).map(([key, item]) => `${deeper}${JSON.stringify(key)}: ${pretty(item, deeper)}`);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  return parts.length ? `${open}\n${parts.join(",\n")}\n${indent}${close}` : open + close;
}

function flat(value) {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(flat).join(", ")}]`;
  return `{${Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}: ${flat(item)}`).join(", ")}}`;
}
