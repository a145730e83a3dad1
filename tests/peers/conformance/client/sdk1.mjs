// The official TypeScript SDK, 1.x, behind a plain face.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

export async function connect(url) {
  const capabilities = { elicitation: { form: { applyDefaults: true } } };
  const client = new Client({ name: "typescript-sdk-1", version: "1" }, { capabilities });
  client.setRequestHandler(ElicitRequestSchema, () => ({ action: "accept", content: {} }));
  const transport = new StreamableHTTPClientTransport(new URL(url));
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
