// The official TypeScript SDK, 1.x, behind a plain face.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { ClientCredentialsProvider } from "@modelcontextprotocol/sdk/client/auth-extensions.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema, ToolListChangedNotificationSchema, UrlElicitationRequiredError } from "@modelcontextprotocol/sdk/types.js";

export const credentialed = ({ client_id, client_secret }) =>
  new ClientCredentialsProvider({ clientId: client_id, clientSecret: client_secret });

export const finish = (transport, back) => transport.finishAuth(back.searchParams.get("code"));

export const transportTo = (url, options) => new StreamableHTTPClientTransport(new URL(url), options);

/** The session has ended: a new one is opened by whoever uses the SDK. */
export const isGone = (error) => error.code === 404;

/** A token allows too little: the SDK has only refreshed it, which gives one that allows no more. */
export const isShort = (error) => error.code === 403;

/** Whoever has a `visit` can be sent to a page; `changed` is told that other tools are there. */
export async function connect(url, transport = transportTo(url), { visit, changed } = {}) {
  const capabilities = { elicitation: { form: { applyDefaults: true }, ...(visit && { url: {} }) } };
  const client = new Client({ name: "typescript-sdk-1", version: "1" }, { capabilities });
  client.setRequestHandler(ElicitRequestSchema, () => ({ action: "accept", content: {} }));
  if (changed) client.setNotificationHandler(ToolListChangedNotificationSchema, changed);
  await client.connect(transport);
  /** Asks again once its person has been where it was sent. */
  const sent = async (ask) => {
    try {
      return await ask();
    } catch (error) {
      if (!visit || !(error instanceof UrlElicitationRequiredError)) throw error;
      for (const { url } of error.elicitations) await visit(url);
      return ask();
    }
  };
  return {
    tools: async () => (await client.listTools()).tools,
    call: (name, args) => sent(() => client.callTool({ name, arguments: args })),
    prompt: (name, given) => sent(() => client.getPrompt({ name, arguments: given })),
    close: async () => {
      await transport.terminateSession().catch(() => {});
      await client.close();
    },
  };
}
