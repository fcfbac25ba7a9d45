// Calls to the server that this page came from: JSON, and events as they stream.

const KEY = "toolgram.key";
const address = (path) => new URL(path, document.baseURI); // the page may be behind a proxy, below some path

export class ApiError extends Error {
  constructor(status, { message, pointer = null, code = null }) {
    super(message);
    Object.assign(this, { status, pointer, code });
  }
}

// The key is kept in this tab only.
export const key = {
  get: () => sessionStorage.getItem(KEY),
  set: (value) => (value ? sessionStorage.setItem(KEY, value) : sessionStorage.removeItem(KEY)),
};

export async function get(path) {
  return (await fetched(path, {})).json();
}

export async function post(path, body, signal) {
  return (await fetched(path, sent(body, signal))).json();
}

// The events of a stream, each parsed; throws the error that one of them reports.
export async function* stream(path, body, signal) {
  const answer = await fetched(path, sent(body, signal));
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read().catch(cut);
    if (done) cut();
    text += value;
    const events = text.split("\n\n");
    text = events.pop();
    for (const event of events) {
      const data = event.replace(/^data: ?/, "");
      if (event.startsWith(":")) continue; // a sign of life
      if (data === "[DONE]") return;
      const parsed = JSON.parse(data);
      if (parsed.error) throw new ApiError(answer.status, parsed.error);
      yield parsed;
    }
  }
}

export function shellCommand(path, body) {
  const quoted = JSON.stringify(body).replaceAll("'", String.raw`'\''`);
  const authorization = key.get() ? ` \\\n  -H 'Authorization: Bearer '"$KEY"` : "";
  return `curl -N ${address(path)} \\\n  -H 'Content-Type: application/json'${authorization} \\\n  -d '${quoted}'`;
}

function sent(body, signal) {
  return { method: "POST", body: JSON.stringify(body), signal, headers: { "Content-Type": "application/json" } };
}

function cut(error) {
  if (error?.name === "AbortError") throw error;
  throw new ApiError(0, { message: "the connection broke off: this is what came before" });
}

async function fetched(path, options) {
  const headers = { ...options.headers, ...(key.get() && { Authorization: `Bearer ${key.get()}` }) };
  let answer;
  try {
    answer = await fetch(address(path), { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, { message: "the server does not answer: is it still running?" });
  }
  if (!answer.ok) throw new ApiError(answer.status, await fault(answer));
  return answer;
}

async function fault(answer) {
  try {
    return (await answer.json()).error;
  } catch {
    return { message: `the server says ${answer.status} ${answer.statusText}` }; // a proxy's page, perhaps
  }
}
