// A JSON Schema for people: each field in a line, with its type and bounds, and what is in it when it is opened.

import { element } from "../common/dom.js";

const RANGES = [
  ["minimum", "maximum", ""],
  ["minLength", "maxLength", " characters"],
  ["minItems", "maxItems", " items"],
];

// A text in which `code` is marked.
export function prose(text, name = "p") {
  const made = element(name);
  made.append(...text.split("`").map((part, at) => (at % 2 ? element("code", part) : part)));
  return made;
}

// What a schema says, as a list of fields; or in a line, where it has none.
export function schemaView(document, schema) {
  const inside = fieldsOf(document, schema);
  if (!inside.length) return element("p", typeOf(schema), "type");
  const list = element("ul", "", "fields");
  list.append(...inside.map((field) => fieldView(document, field)));
  return list;
}

function fieldView(document, { name, schema, required }) {
  const item = element("li");
  const fields = fieldsOf(document, schema);
  const line = element(fields.length ? "summary" : "p");
  if (name) line.append(element("code", name), " ");
  line.append(element("span", typeOf(schema), "type"));
  if (required) line.append(" ", element("span", "required", "required"));
  for (const bound of boundsOf(schema)) line.append(" ", element("span", bound, "about"));
  const { description } = resolved(document, schema);
  if (description) line.append(" ", prose(description, "span"));
  if (!fields.length) {
    item.append(line);
    return item;
  }
  const details = element("details");
  details.append(line);
  details.addEventListener("toggle", () => details.append(schemaView(document, schema)), { once: true }); // it may hold itself
  item.append(details);
  return item;
}

// The fields of an object; of a list, those of its items; of several forms, each form that has fields.
function fieldsOf(document, schema) {
  const { properties, required = [], items, anyOf, contentSchema, additionalProperties } = resolved(document, schema);
  if (properties) {
    return Object.entries(properties).map(([name, each]) => ({ name, schema: each, required: required.includes(name) }));
  }
  if (items) return fieldsOf(document, items);
  if (contentSchema) return fieldsOf(document, contentSchema);
  const forms = (anyOf ?? []).filter((form) => fieldsOf(document, form).length);
  if (forms.length === 1) return fieldsOf(document, forms[0]);
  if (forms.length) return forms.map((form) => ({ name: "", schema: form, required: false }));
  return typeof additionalProperties === "object" ? fieldsOf(document, additionalProperties) : [];
}

function resolved(document, schema) {
  return schema.$ref ? document.components.schemas[nameOf(schema)] : schema;
}

const nameOf = ({ $ref }) => $ref.split("/").at(-1);

// The type in a line.
function typeOf(schema) {
  if (schema.$ref) return nameOf(schema);
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(" | ");
  if (schema.anyOf) return [...new Set(schema.anyOf.map(typeOf))].join(" | ");
  if (schema.contentSchema) return `JSON of ${typeOf(schema.contentSchema)}`;
  if (schema.items) return `list of ${bracketed(typeOf(schema.items))}`;
  if (typeof schema.additionalProperties === "object" && !schema.properties) {
    return `object of ${bracketed(typeOf(schema.additionalProperties))}`;
  }
  return schema.type ?? (schema.properties ? "object" : "anything");
}

const bracketed = (type) => (type.includes(" | ") ? `(${type})` : type);

function boundsOf(schema) {
  const forms = (schema.anyOf ?? []).filter(({ type }) => type !== "null");
  if (forms.length === 1) return boundsOf(forms[0]);
  const ranges = RANGES.map(([least, most, unit]) => range(schema[least], schema[most], unit)).filter(Boolean);
  return "default" in schema ? [...ranges, `default ${JSON.stringify(schema.default)}`] : ranges;
}

function range(least, most, unit) {
  if (least === undefined && most === undefined) return "";
  if (least === undefined) return `at most ${most}${unit}`;
  return most === undefined ? `at least ${least}${unit}` : `${least} to ${most}${unit}`;
}
