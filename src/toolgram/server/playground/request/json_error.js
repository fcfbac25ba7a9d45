// Where a text stops being JSON, and what is expected there; browsers report it in many ways, some without the place.

const SPACE = /[ \t\r\n]*/y;
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const SCALAR = new RegExp(`${STRING.source}|-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null`, "y");

class Wrong extends Error {
  constructor(at, wanted) {
    super(`${wanted} is expected here`);
    this.at = at;
  }
}

// {at, line, why}; null for JSON and for white space.
export function jsonError(text) {
  if (!text.trim()) return null;
  try {
    JSON.parse(text);
    return null;
  } catch {
    return placed(text);
  }
}

function placed(text) {
  try {
    const end = skip(text, value(text, skip(text, 0)));
    throw new Wrong(end, "the end");
  } catch (error) {
    if (!(error instanceof Wrong)) throw error;
    return { at: error.at, line: text.slice(0, error.at).split("\n").length, why: error.message };
  }
}

// Each of these takes the place where something begins, and returns where it ends.

function value(text, at) {
  if (text[at] === "[") return list(text, at, "]", value);
  if (text[at] === "{") return list(text, at, "}", member);
  return matched(text, at, SCALAR, "a value");
}

function member(text, at) {
  const colon = skip(text, matched(text, at, STRING, "a key in double quotes"));
  if (text[colon] !== ":") throw new Wrong(colon, "a colon");
  return value(text, skip(text, colon + 1));
}

function list(text, open, close, item) {
  let at = skip(text, open + 1);
  if (text[at] === close) return at + 1;
  for (;;) {
    at = skip(text, item(text, at));
    if (text[at] === close) return at + 1;
    if (text[at] !== ",") throw new Wrong(at, `a comma or ${close}`);
    at = skip(text, at + 1);
  }
}

function skip(text, at) {
  return matched(text, at, SPACE);
}

function matched(text, at, pattern, wanted) {
  pattern.lastIndex = at;
  if (!pattern.test(text)) throw new Wrong(at, wanted);
  return pattern.lastIndex;
}
