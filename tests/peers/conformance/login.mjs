// A client that logs in to one of the suite's mock servers, lists its tools and calls each:
//
//   login.mjs URL     the suite adds the URL of its mock
//
// With TRUNKLINE, which names the gateway's program, the gateway is the OAuth client: `trunkline login` is run whenever it says that a
// login is needed, and its link followed. Without, the official SDK that speaks the revision logs in itself.
import { gateway } from "./client/between.mjs";
import { Visitor, follow } from "./client/visitor.mjs";

const LIMIT = 60000;
const PAUSE = 100;
const TRIES = 150;
/** So long a new login may take to be taken up. */
const TAKEN = 30;
/** So often a login is begun, whoever begins it: a scenario allows no more. */
const LOGINS_MAX = 3;
/** The client's metadata document of the suite. */
const DOCUMENT = "https://conformance-test.local/client-metadata.json";

const mock = process.argv.at(-1);
const { TRUNKLINE: program, MCP_CONFORMANCE_SCENARIO: scenario, MCP_CONFORMANCE_PROTOCOL_VERSION: revision } = process.env;
const told = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}");
const sdk = await import(revision === "2026-07-28" ? "./client/sdk2.mjs" : "./client/sdk1.mjs");

const ASKS = /run `trunkline login mock`/;
const pause = () => new Promise((resolve) => setTimeout(resolve, PAUSE));

/** Whether nobody logs in: the client has credentials of its own. */
const isMachine = scenario === "auth/client-credentials-basic";

const json = async (url) => (await fetch(url)).json();

/** The authorization server, as a person reads it in what the mock says of itself. */
async function issuer() {
  const { origin, pathname } = new URL(mock);
  const { authorization_servers } = await json(`${origin}/.well-known/oauth-protected-resource${pathname}`);
  return authorization_servers[0];
}

/** Where it gives tokens. */
async function tokenEndpoint() {
  return (await json(new URL("/.well-known/oauth-authorization-server", await issuer()))).token_endpoint;
}

/** How the upstream is configured: with what the suite gives a client that it has registered. */
async function keys() {
  if (isMachine) {
    const { client_id, client_secret } = told;
    const client = `client_id = "${client_id}", client_secret = "${client_secret}"`;
    return `auth = { type = "client_credentials", token_url = "${await tokenEndpoint()}", ${client} }\n`;
  }
  const auth = [];
  if (scenario === "auth/basic-cimd") auth.push(`client_id = "${DOCUMENT}"`);
  if (told.client_id) auth.push(`client_id = "${told.client_id}"`);
  if (told.client_secret) auth.push(`client_secret = "${told.client_secret}"`, `issuer = "${told.issuer ?? (await issuer())}"`);
  return `auth = { ${['type = "oauth"', ...auth].join(", ")} }\n`;
}

async function throughGateway() {
  let [logins, isWanted] = [0, false];
  const between = await gateway(program, mock, await keys(), (line) => (isWanted ||= ASKS.test(line)));
  const login = async () => {
    isWanted = false;
    if (++logins > LOGINS_MAX) throw new Error("one login follows the other");
    const status = await between.run(["login", "mock", "--no-browser"], (line) => {
      if (line.startsWith("http")) follow(line).then((back) => fetch(back)).catch((error) => console.error(error));
    });
    if (status !== 0) throw new Error(`trunkline login ended with ${status}`);
  };
  try {
    if (!isMachine) await login();
    const client = await sdk.connect(between.url);
    try {
      let tools = [];
      for (let tries = 0; tools.length === 0 && tries < TRIES; tries++) {
        tools = await client.tools();
        if (isWanted) await login();
        else if (tools.length === 0) await pause();
      }
      if (tools.length === 0) throw new Error("no tool came");
      for (const { name } of tools) {
        for (let tries = 1; ; tries++) {
          // A result that says what to run, or an error that does.
          if (!ASKS.test(await client.call(name, {}).then(JSON.stringify, String))) break;
          if (tries % TAKEN === 1) await login();
          else await pause();
        }
      }
    } finally {
      await client.close();
    }
  } finally {
    await between.stop();
  }
}

async function directly() {
  const visitor = isMachine ? sdk.credentialed(told) : new Visitor(told, DOCUMENT);
  let transport;
  /** Logs in as often as it is asked to, and no longer than that makes sense. */
  const loggedIn = async (attempt) => {
    for (;;) {
      try {
        return await attempt();
      } catch (error) {
        const back = visitor.back?.();
        if (!back || visitor.visits >= LOGINS_MAX) throw error;
        await sdk.finish(transport, back);
      }
    }
  };
  const client = await loggedIn(() => {
    transport = sdk.transportTo(mock, { authProvider: visitor });
    return sdk.connect(mock, transport);
  });
  try {
    for (const { name } of await loggedIn(() => client.tools())) await loggedIn(() => client.call(name, {}));
  } finally {
    await client.close();
  }
}

const guard = setTimeout(() => process.exit(3), LIMIT);
let status = 0;
try {
  await (program ? throughGateway() : directly());
} catch (error) {
  console.error(error);
  status = 1;
}
clearTimeout(guard);
process.exit(status);
