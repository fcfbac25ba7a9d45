// The page: explains the request as it is edited, and runs it on demand.

import { Answer } from "./results/answer.js";
import { post, shellCommand, stream } from "./common/api.js";
import { illustrated, imagesOf } from "./common/content.js";
import { copied } from "./common/copy.js";
import { $ } from "./common/dom.js";
import { colourable } from "./common/editor.js";
import { coloured } from "./common/json.js";
import { askForKey } from "./common/keys.js";
import { examples } from "./request/examples.js";
import { clearFaults, showFault } from "./request/faults.js";
import { fillForm, jsonErrors, offerToolChoices, readForm, showWhatApplies } from "./request/form.js";
import { addMessage, arrange, fillMessages, readMessages, removeMessage } from "./request/messages.js";
import { fromFile, linked, share } from "./request/share.js";
import { offerModels, readTemplateFile, takeTemplate } from "./request/template.js";
import { showTools } from "./request/tools.js";
import { readChat, showAnswer, showChat } from "./results/chat.js";
import { showExplanation } from "./results/explain.js";
import { shownTab, showTab } from "./results/tabs.js";

const PAUSE = 250; // milliseconds without typing before the request is explained
const CHAT = "v1/chat/completions";

let explaining = new AbortController();
let explained = ""; // what is shown, as JSON; "" if that is no longer true
let running = null; // the AbortController of the answer that streams
let answer = null;
let said = null; // the answer that is not a message of the form yet
let timer = 0;

// The body of the form, or null after showing a fault in it.
function body() {
  const [wrong] = jsonErrors();
  if (!wrong) return readForm();
  const pointer = wrong.control.closest("[data-at]").dataset.at;
  explained = "";
  showFault({ message: `this is not JSON: ${wrong.why}`, pointer, line: wrong.line, at: wrong.at });
  return null;
}

async function explain() {
  explaining.abort();
  explaining = new AbortController();
  const { signal } = explaining;
  const asked = body();
  const wanted = JSON.stringify([asked, $("dialect").value]);
  if (!asked || wanted === explained) return;
  explained = "";
  $("body-text").replaceChildren(...coloured(JSON.stringify(asked, null, 2)));
  $("curl-text").textContent = shellCommand(CHAT, { ...asked, stream: true });
  if (!running) showChat(asked.messages, said, false);
  await reported(async () => {
    const explanation = await post("v1/explain", { ...asked, dialect: $("dialect").value }, signal);
    clearFaults();
    showExplanation(explanation);
    explained = wanted;
  });
}

function explainSoon() {
  clearTimeout(timer);
  timer = setTimeout(explain, PAUSE);
}

async function run() {
  stop();
  const asked = body();
  if (!asked) return;
  running = new AbortController();
  const { signal } = running;
  showRunning(true);
  if (shownTab() !== "chat") showTab("answer");
  if (matchMedia("(max-width: 60rem)").matches) $("results").scrollIntoView();
  clearFaults();
  const options = { stream: true, stream_options: { include_usage: true, include_tokens: true } };
  let reason = "stopped";
  await reported(async () => {
    const chunks = stream(CHAT, { ...asked, ...options }, signal);
    const mine = (answer = said = new Answer());
    showChat(asked.messages, mine, true);
    try {
      for await (const chunk of chunks) {
        mine.take(chunk);
        if (said === mine) showAnswer(mine, true);
      }
      reason = mine.finish;
    } catch (error) {
      if (!signal.aborted) reason = "an error";
      throw error;
    } finally {
      if (answer === mine) mine.end(reason);
      if (said === mine) showChat(asked.messages, mine, false);
    }
  });
  if (running?.signal !== signal) return; // another run began
  running = null;
  showRunning(false);
  $("status").textContent = answer ? `${reason}: ${answer.summary}` : "";
}

function stop() {
  running?.abort();
}

function showRunning(runs) {
  $("run").hidden = runs;
  $("stop").hidden = !runs;
  $("results").setAttribute("aria-busy", String(runs));
  if (runs) $("status").textContent = "running …";
}

// Goes on from the chat: its answer, the results and the text become messages of the form, which is run.
function goOn() {
  if (running || !body()) return;
  const { results, text } = readChat();
  const messages = [...readMessages(), ...(said?.turn ?? [])];
  const first = messages.length - results.length;
  results.forEach(([, result], at) => {
    const message = messages[first + at];
    message.content = illustrated(result, imagesOf(message.content));
  });
  if (text) messages.push({ role: "user", content: text });
  if (["assistant", undefined].includes(messages.at(-1)?.role)) return $("chat-text").focus();
  said = null;
  fillMessages(messages);
  $("chat-text").value = "";
  explainSoon();
  run();
}

// Does some work with the server, and resolves to whether it succeeded. Errors are shown, and a key is asked for if the
// server needs one; with a new key everything starts over.
async function reported(work) {
  try {
    await work();
    return true;
  } catch (error) {
    if (error.name === "AbortError") return false;
    if (error.status === undefined) throw error; // a bug in this page: the console should show it
    explained = "";
    showFault(error);
    const asks = error.status === 401 && !$("key-dialog").open;
    if (asks && (await askForKey("This server needs an API key."))) begin();
    return false;
  }
}

async function begin() {
  explained = "";
  if (!(await reported(offerModels))) return;
  showWhatApplies();
  await explain();
}

// Shows a request in the form, and says what of it has no place there.
function open(request) {
  stop();
  said = null;
  const lost = fillForm(request);
  if (lost.length) $("status").textContent = `left out, since there is no field for it here: ${lost.join(", ")}`;
}

// Opens what `from` resolves to, if that is anything; resolves to whether it was. What is wrong is shown.
async function opened(from) {
  try {
    const request = await from;
    if (request) open(request);
    return Boolean(request);
  } catch (error) {
    showFault({ message: error.message });
    return false;
  }
}

const form = $("request");
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("input", ({ target }) => {
  if (target.id === "tools") {
    showTools();
    offerToolChoices();
  }
  explainSoon();
});
form.addEventListener("change", async ({ target }) => {
  if (target.matches(".role")) arrange();
  if (target.id === "template") await reported(takeTemplate);
  if (target.id === "template-file" && target.files.length) await readTemplateFile(target.files[0]);
  showWhatApplies();
  explainSoon();
});
form.addEventListener("click", ({ target }) => {
  if (target.matches(".message .remove")) removeMessage(target.closest(".message"));
  else if (target.id === "add-message") addMessage({ role: "user" }).querySelector(".content").focus();
  else return;
  explainSoon();
});
$("template-text").addEventListener("dragover", (event) => event.preventDefault());
$("template-text").addEventListener("drop", async (event) => {
  const [file] = event.dataTransfer.files;
  if (!file) return;
  event.preventDefault();
  await readTemplateFile(file);
  explainSoon();
});
$("example").replaceChildren(...Object.keys(examples).map((name) => new Option(name)));
$("example").addEventListener("change", () => {
  open(examples[$("example").value]);
  explain();
});
$("dialect").addEventListener("change", explain);
$("run").addEventListener("click", run);
$("stop").addEventListener("click", stop);
$("key").addEventListener("click", async () => (await askForKey()) && begin());
$("share").addEventListener("click", () => {
  const asked = body();
  if (asked) share(asked);
});
$("share-open").addEventListener("change", async ({ target }) => {
  if (!target.files.length) return;
  $("share-dialog").close();
  if (await opened(fromFile(target.files[0]))) explain();
  target.value = "";
});
addEventListener("hashchange", async () => (await opened(linked())) && explain());
$("continue").addEventListener("click", () => {
  const cards = answer.turn.map(addMessage);
  if (said === answer) said = null;
  $("continue").hidden = true;
  cards.at(-1).querySelector(".content").focus();
  explainSoon();
});
$("chat-form").addEventListener("submit", (event) => {
  event.preventDefault();
  goOn();
});
$("chat-text").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.ctrlKey || event.metaKey || event.isComposing) return;
  event.preventDefault();
  goOn();
});
document.addEventListener("click", async ({ target }) => {
  if (target.dataset.copy) $("status").textContent = await copied($(target.dataset.copy));
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !document.querySelector("dialog[open]")) {
    event.preventDefault();
    if (event.target.closest("#chat")) goOn();
    else run();
  } else if (event.key === "Escape" && running) stop();
});

document.querySelectorAll("textarea[data-json], textarea[data-coloured]").forEach(colourable);
let unread = null;
const first = await linked().catch((error) => void (unread = error));
open(first ?? Object.values(examples)[0]);
await begin();
if (unread) showFault(unread);
