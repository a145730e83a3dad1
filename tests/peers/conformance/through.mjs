// A client of the suite's mock servers, with the gateway in between:
//
//   through.mjs URL     the suite adds the URL of its mock
//
// TRUNKLINE names the gateway's program and TRUNKLINE_ERA how it finds out what the mock speaks; without TRUNKLINE the
// client is connected to the mock itself. What there is to do is told by the suite's own variables.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { errands } from "./client/errands.mjs";

const LIMIT = 50000;

/** Starts a gateway with the mock as its only upstream; resolves to its endpoint and a way to end it. */
async function gateway(program, mock) {
  const folder = mkdtempSync(join(tmpdir(), "trunkline-conformance-"));
  const file = join(folder, "trunkline.toml");
  const anywhere = 'listen = "127.0.0.1:0"';
  const upstream = `[upstreams.mock]\nurl = "${mock}"\nera = "${process.env.TRUNKLINE_ERA ?? "auto"}"\n`;
  writeFileSync(file, `[server]\n${anywhere}\n[admin]\n${anywhere}\n[naming]\nstrategy = "flat"\n${upstream}`);
  const env = { ...process.env, HOME: folder };
  const child = spawn(program, ["serve", "--config", file], { env, stdio: ["ignore", "ignore", "pipe"] });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const url = await new Promise((resolve, reject) => {
    child.once("error", reject);
    createInterface({ input: child.stderr }).on("line", (line) => {
      console.error(line);
      const found = /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(line);
      if (found) resolve(found[0]);
    });
    ended.then(() => reject(new Error("the gateway has ended")));
  });
  const stop = async () => {
    child.kill("SIGTERM");
    const timer = setTimeout(() => child.kill("SIGKILL"), 10000);
    await ended;
    clearTimeout(timer);
    rmSync(folder, { recursive: true, force: true });
  };
  return { url, stop };
}

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
