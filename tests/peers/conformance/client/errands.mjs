// What a client is sent to do in each of the suite's scenarios for clients.

const PAUSE = 100;

/** A first list is answered without an upstream that takes too long to start: lists until there is something. */
async function listed(list) {
  for (;;) {
    const found = await list();
    if (found.length > 0) return found;
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
  }
}

const callAll = async (client, calls) => {
  await listed(client.tools);
  for (const { name, arguments: args } of calls) await client.call(name, args);
};

const callEach = (...names) => (client) => callAll(client, names.map((name) => ({ name, arguments: {} })));

/** Tries every tool that is listed, with something for each argument that it must have. */
async function callWhateverIsListed(client) {
  for (const tool of await listed(client.tools)) {
    const args = Object.fromEntries((tool.inputSchema.required ?? []).map((name) => [name, "something"]));
    await client.call(tool.name, args).catch((error) => console.error(tool.name, error.message));
  }
}

async function standardHeaders(client) {
  for (const tool of await listed(client.tools)) await client.call(tool.name, {});
  for (const resource of await client.resources()) await client.read(resource.uri);
  for (const prompt of await client.prompts()) await client.prompt(prompt.name);
}

async function echoSchema(client) {
  const tool = (await listed(client.tools)).find(({ name }) => name === "json_schema_2020_12_tool");
  await client.call("json_schema_echo", { schema: tool.inputSchema });
}

export const errands = {
  initialize: (client) => client.tools(),
  tools_call: (client) => callAll(client, [{ name: "add_numbers", arguments: { a: 5, b: 3 } }]),
  "elicitation-sep1034-client-defaults": callEach("test_client_elicitation_defaults"),
  "sse-retry": callEach("test_reconnection"),
  "request-metadata": (client) => client.tools(),
  "sep-2322-client-request-state": callEach(
    "test_mrtr_echo_state",
    "test_mrtr_unrelated",
    "test_mrtr_no_state",
    "test_mrtr_no_result_type",
  ),
  "http-standard-headers": standardHeaders,
  "http-custom-headers": (client, told) => callAll(client, told.toolCalls),
  "http-invalid-tool-headers": callWhateverIsListed,
  "json-schema-ref-no-deref": (client) => listed(client.tools),
  "json-schema-2020-12-preservation": echoSchema,
};
