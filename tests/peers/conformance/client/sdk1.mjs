// The official TypeScript SDK, 1.x, behind a plain face.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { ClientCredentialsProvider } from "@modelcontextprotocol/sdk/client/auth-extensions.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

export const credentialed = ({ client_id, client_secret }) =>
  new ClientCredentialsProvider({ clientId: client_id, clientSecret: client_secret });

export const finish = (transport, back) => transport.finishAuth(back.searchParams.get("code"));

export const transportTo = (url, options) => new StreamableHTTPClientTransport(new URL(url), options);

export async function connect(url, transport = transportTo(url)) {
  const capabilities = { elicitation: { form: { applyDefaults: true } } };
  const client = new Client({ name: "typescript-sdk-1", version: "1" }, { capabilities });
  client.setRequestHandler(ElicitRequestSchema, () => ({ action: "accept", content: {} }));
  await client.connect(transport);
  return {
    tools: async () => (await client.listTools()).tools,
    call: (name, args) => client.callTool({ name, arguments: args }),
    close: async () => {
      await transport.terminateSession().catch(() => {});
      await client.close();
    },
  };
}
