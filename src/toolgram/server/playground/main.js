// The page: explains the request as it is edited, and runs it on demand.

import { Answer } from "./results/answer.js";
import { get, post, shellCommand, stream } from "./common/api.js";
import { $ } from "./common/dom.js";
import { examples } from "./request/examples.js";
import { showExplanation } from "./results/explain.js";
import { clearFaults, showFault } from "./request/faults.js";
import { fillForm, jsonErrors, offerToolChoices, readForm, showWhatApplies } from "./request/form.js";
import { askForKey } from "./common/keys.js";
import { addMessage, arrange, removeMessage } from "./request/messages.js";
import { showTab } from "./results/tabs.js";

const PAUSE = 250; // milliseconds without typing before the request is explained
const CHAT = "v1/chat/completions";

let explaining = new AbortController();
let explained = ""; // what is shown, as JSON; "" if that is no longer true
let running = null; // the AbortController of the answer that streams
let answer = null;
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
  $("body-text").textContent = JSON.stringify(asked, null, 2);
  $("curl-text").textContent = shellCommand(CHAT, { ...asked, stream: true });
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
  showTab("answer");
  if (matchMedia("(max-width: 60rem)").matches) $("results").scrollIntoView();
  clearFaults();
  const options = { stream: true, stream_options: { include_usage: true, include_tokens: true } };
  let reason = "stopped";
  await reported(async () => {
    const chunks = stream(CHAT, { ...asked, ...options }, signal);
    const mine = (answer = new Answer());
    try {
      for await (const chunk of chunks) mine.take(chunk);
      reason = mine.finish;
    } catch (error) {
      if (!signal.aborted) reason = "an error";
      throw error;
    } finally {
      if (answer === mine) mine.end(reason);
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

// The models of the server, which the form offers, and their templates.
async function offerModels() {
  const { data } = await get("v1/models");
  const chosen = $("model").value;
  $("model").replaceChildren(...data.map(({ id }) => new Option(id, id)));
  if (data.some(({ id }) => id === chosen)) $("model").value = chosen;
  const others = data.map(({ id }) => new Option(`of ${id}, to be changed`, id));
  $("template").replaceChildren(new Option("the model's own", ""), ...others, new Option("another one", "*"));
}

async function takeTemplate() {
  const from = $("template").value;
  if (from === "" || from === "*") return;
  const { chat_template: given } = await get(`v1/models/${encodeURIComponent(from)}`);
  showTemplate(given.template, given.bos_token, given.eos_token);
}

function showTemplate(source, bos, eos) {
  $("template-text").value = source;
  $("bos").value = bos;
  $("eos").value = eos;
}

// A template's file, or a tokenizer's configuration with the template and the tokens in it.
async function readTemplateFile(file) {
  const text = await file.text();
  if (!file.name.endsWith(".json")) return showTemplate(text, $("bos").value, $("eos").value);
  try {
    const { chat_template: given, bos_token: bos, eos_token: eos } = JSON.parse(text);
    const source = Array.isArray(given) ? (given.find(({ name }) => name === "default") ?? given[0]).template : given;
    const token = (value) => value?.content ?? value ?? "";
    showTemplate(source ?? "", token(bos), token(eos));
  } catch (error) {
    showFault({ message: `${file.name} is no tokenizer configuration: ${error.message}`, pointer: "/chat_template" });
  }
}

// Copies a text, or selects it if the browser does not let pages copy. Returns what was done, in words.
async function copied(element) {
  try {
    await navigator.clipboard.writeText(element.textContent);
    return "copied";
  } catch {
    getSelection().selectAllChildren(element);
    return "selected: copy it with Ctrl C";
  }
}

async function begin() {
  explained = "";
  if (!(await reported(offerModels))) return;
  showWhatApplies();
  await explain();
}

const form = $("request");
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("input", ({ target }) => {
  if (target.id === "tools") offerToolChoices();
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
  if (target.matches(".remove")) removeMessage(target.closest(".message"));
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
  fillForm(examples[$("example").value]);
  explain();
});
$("dialect").addEventListener("change", explain);
$("run").addEventListener("click", run);
$("stop").addEventListener("click", stop);
$("key").addEventListener("click", async () => (await askForKey()) && begin());
$("continue").addEventListener("click", () => {
  const cards = answer.turn.map(addMessage);
  cards.at(-1).querySelector(".content").focus();
  explainSoon();
});
document.addEventListener("click", async ({ target }) => {
  if (target.dataset.copy) $("status").textContent = await copied($(target.dataset.copy));
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !$("key-dialog").open) {
    event.preventDefault();
    run();
  } else if (event.key === "Escape" && running) stop();
});

fillForm(Object.values(examples)[0]);
begin();
