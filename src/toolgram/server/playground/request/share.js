// A request as a link or a file. A link holds it after the "#", compressed, which no browser sends to a server.

import { $ } from "../common/dom.js";
import { copied } from "../common/copy.js";

const MOST_IN_A_LINK = 16_000; // characters: many programs cut longer ones
const MOST_READ = 4_000_000; // bytes that a link may unfold to
const NAME = "request";

// The request of a link that the page was opened with; null if it has none. Throws what a person is to be told.
export async function linked() {
  const packed = new URLSearchParams(location.hash.slice(1)).get(NAME);
  if (packed === null) return null;
  let text;
  try {
    text = await unpacked(packed);
  } catch (error) {
    const why = error instanceof RangeError ? error.message : "a part of it is missing";
    throw new Error(`the link cannot be read: ${why}`);
  }
  return checked(text, "the link");
}

export async function fromFile(file) {
  return checked(await file.text(), file.name);
}

function checked(text, where) {
  let body;
  try {
    body = JSON.parse(text);
  } catch (error) {
    throw new Error(`${where} holds no JSON: ${error.message}`);
  }
  if (!Array.isArray(body?.messages)) throw new Error(`${where} holds no request: it has no messages`);
  return body;
}

export async function share(body) {
  const text = JSON.stringify(body);
  const link = `${location.href.replace(/#.*/, "")}#${NAME}=${await packed(text)}`;
  const fits = link.length <= MOST_IN_A_LINK;
  $("share-link").value = fits ? link : "";
  $("share-copy").disabled = !fits;
  $("share-said").textContent = fits
    ? `${link.length} characters`
    : `The link would have ${link.length} characters; many programs cut those of more than ${MOST_IN_A_LINK}. Download the file instead.`;
  $("share-file").onclick = () => download(`${JSON.stringify(body, null, 2)}\n`);
  $("share-dialog").showModal();
}

function download(text) {
  const address = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  const anchor = document.createElement("a");
  Object.assign(anchor, { href: address, download: "request.json" });
  anchor.click();
  URL.revokeObjectURL(address);
  $("share-said").textContent = "request.json is downloaded";
}

async function packed(text) {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const letters = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

async function unpacked(text) {
  const letters = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const pieces = [];
  let size = 0;
  for (const reader = stream.getReader(); ; ) {
    const { value, done } = await reader.read();
    if (done) return new TextDecoder().decode(await new Blob(pieces).arrayBuffer());
    size += value.length;
    if (size > MOST_READ) {
      reader.cancel();
      throw new RangeError(`it unfolds to more than ${MOST_READ} bytes`);
    }
    pieces.push(value);
  }
}

$("share-copy").addEventListener("click", async () => {
  $("share-said").textContent = await copied($("share-link"));
});
