// A client of the suite's mock servers, with the gateway in between:
//
//   through.mjs URL     the suite adds the URL of its mock
//
// TRUNKLINE names the gateway's program and TRUNKLINE_ERA how it finds out what the mock speaks; without TRUNKLINE the
// client is connected to the mock itself. What there is to do is told by the suite's own variables.
import { gateway } from "./client/between.mjs";
import { errands } from "./client/errands.mjs";

const LIMIT = 50000;

const mock = process.argv.at(-1);
const { TRUNKLINE: program, MCP_CONFORMANCE_SCENARIO: scenario, MCP_CONFORMANCE_PROTOCOL_VERSION: revision } = process.env;
const told = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}");

const guard = setTimeout(() => process.exit(3), LIMIT);
const between = program ? await gateway(program, mock) : { url: mock, stop: async () => {} };
let status = 0;
try {
  const sdk = await import(revision === "2026-07-28" ? "./client/sdk2.mjs" : "./client/sdk1.mjs");
  const client = await sdk.connect(between.url);
  try {
    await errands[scenario](client, told);
  } finally {
    await client.close();
  }
} catch (error) {
  console.error(error);
  status = 1;
} finally {
  await between.stop();
  clearTimeout(guard);
}
process.exit(status);
