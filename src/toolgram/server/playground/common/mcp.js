// Tools of the MCP servers that this server is configured with: it lists them, and runs calls of them.

import { get, post } from "./api.js";

const places = new Map(); // where the tools of the request are that were taken from a server, by their names

// [{server_label, error, tools}], the tools as a request has them; [] where there are no servers.
export async function mcpServers() {
  const { data } = await get("v1/mcp/servers");
  return data.map((server) => ({ ...server, tools: server.tools.map((tool) => asTool(server.server_label, tool)) }));
}

function asTool(label, { name, description, input_schema: parameters, annotations }) {
  const stem = `${label}_${name}`.replaceAll(/[^A-Za-z0-9_-]+/g, "_").slice(0, 60);
  const isOther = (place) => place && (place.server_label !== label || place.name !== name);
  let called = stem;
  for (let number = 2; isOther(places.get(called)); number++) called = `${stem}_${number}`;
  const tool = { type: "function", function: { name: called, description, parameters } };
  places.set(called, { server_label: label, name, writes: annotations?.readOnlyHint !== true });
  return tool;
}

// Where a tool is, and whether it may change something: {server_label, name, writes}; undefined if it cannot be run.
export const placeOf = (name) => places.get(name);

// What a tool answers, or says is wrong. The user was asked where it may change something.
export async function called({ server_label, name, writes }, text, signal) {
  const { output, error } = await post("v1/mcp/call", { server_label, name, arguments: text, approve: writes }, signal);
  return output ?? error;
}
