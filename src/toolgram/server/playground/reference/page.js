// The page of the API: every route of the server's OpenAPI document, with what goes in and what comes out.

import { get, shellCommand } from "../common/api.js";
import { $, element } from "../common/dom.js";
import { coloured, pretty } from "../common/json.js";
import { prose, schemaView } from "./schema.js";

function operation(document, path, method, described) {
  const section = element("section", "", "operation");
  section.id = idOf(method, path);
  const title = element("h2");
  title.append(badge(method), element("code", path));
  section.append(title, prose(described.summary));
  const { parameters = [], requestBody: body, responses } = described;
  if (parameters.length) {
    section.append(element("h3", "Parameters"), schemaView(document, asFields(parameters)));
  }
  if (body) section.append(element("h3", "Body"), ...content(document, body.content));
  for (const example of examples(body)) section.append(exampleView(path, example));
  section.append(element("h3", "Answers"), ...Object.entries(responses).map((answer) => response(document, answer)));
  return section;
}

function response(document, [status, { description, headers = {}, content: given = {} }]) {
  const item = element("details", "", "answer");
  const line = element("summary");
  line.append(element("code", status, status < "300" ? "good" : ""), " ", prose(description, "span"));
  item.append(line);
  onOpened(item, () => {
    item.append(...content(document, given));
    const named = Object.keys(headers).map((name) => ({ name, ...document.components.headers[name] }));
    if (named.length) item.append(element("h4", "Headers"), schemaView(document, asFields(named)));
  });
  return item;
}

// Parameters or headers as an object's fields.
function asFields(named) {
  const properties = named.map(({ name, schema, description }) => [name, { ...schema, description }]);
  const required = named.filter((each) => each.required).map(({ name }) => name);
  return { properties: Object.fromEntries(properties), required };
}

// What goes in or comes out, by media type; of a stream it is what each event holds.
function content(document, given) {
  return Object.entries(given).flatMap(([type, { schema, itemSchema }]) => [
    element("p", itemSchema ? `${type}, each event` : type, "about"),
    schemaView(document, schema ?? itemSchema),
  ]);
}

function examples(body) {
  return Object.entries(body?.content["application/json"]?.examples ?? {});
}

function exampleView(path, [name, { value }]) {
  const item = element("details", "", "example");
  item.append(element("summary", `Example: ${name}`));
  onOpened(item, () => {
    const json = element("pre", "", "code");
    json.append(...coloured(pretty(value)));
    item.append(json, element("pre", shellCommand(path.slice(1), value), "code"));
  });
  return item;
}

function onOpened(details, fill) {
  details.addEventListener("toggle", fill, { once: true });
}

function badge(method) {
  return element("span", method.toUpperCase(), `method ${method}`);
}

const idOf = (method, path) => `${method}${path.replaceAll(/[^\w]+/g, "-")}`;

function link(method, path) {
  const item = element("a");
  item.href = `#${idOf(method, path)}`;
  item.append(badge(method), element("code", path));
  return item;
}

async function show() {
  const document = await get("openapi.json");
  $("version").textContent = document.info.version;
  $("about").replaceWith(prose(document.info.description));
  const all = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, described]) => [path, method, described]),
  );
  $("routes").replaceChildren(...all.map(([path, method]) => link(method, path)));
  $("operations").append(...all.map((each) => operation(document, ...each)));
  window.document.getElementById(location.hash.slice(1))?.scrollIntoView(); // it was not there when the page came
}

show().catch((error) => {
  if (error.status === undefined) throw error;
  $("problem").textContent = error.message;
  $("problem").hidden = false;
});
