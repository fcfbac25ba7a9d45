// Where the value of a JSON pointer (RFC 6901) is in a JSON text.

// {start, end, line} of the value, or of the innermost existing one around it; null for a text that is not JSON.
export function locate(text, pointer) {
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  const keys = pointer.split("/").slice(1).map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
  let start = skipSpace(text, 0);
  for (const key of keys) {
    const inner = member(text, start, key);
    if (inner === null) break;
    start = inner;
  }
  return { start, end: endOfValue(text, start), line: text.slice(0, start).split("\n").length };
}

function member(text, start, key) {
  const open = text[start];
  if (open !== "{" && open !== "[") return null;
  let at = skipSpace(text, start + 1);
  for (let index = 0; text[at] !== "}" && text[at] !== "]"; index++) {
    let name = String(index);
    if (open === "{") {
      const end = endOfValue(text, at);
      name = JSON.parse(text.slice(at, end));
      at = skipSpace(text, skipSpace(text, end) + 1); // past the colon
    }
    if (name === key) return at;
    at = skipSpace(text, endOfValue(text, at));
    if (text[at] === ",") at = skipSpace(text, at + 1);
  }
  return null;
}

function endOfValue(text, start) {
  let depth = 0;
  let at = start;
  do {
    const token = /"(?:[^"\\]|\\.)*"|[{}[\]]|[,:\s]+|[^{}[\],:\s"]+/y;
    token.lastIndex = at;
    const found = token.exec(text)[0];
    at += found.length;
    if (found === "{" || found === "[") depth++;
    if (found === "}" || found === "]") depth--;
  } while (depth > 0);
  return at;
}

function skipSpace(text, at) {
  while (at < text.length && " \t\r\n".includes(text[at])) at++;
  return at;
}
