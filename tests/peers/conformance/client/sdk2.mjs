// The official TypeScript SDK, 2.x, pinned to the stateless revision, behind a plain face.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const FRESH = { cacheMode: "refresh" };

export const finish = (transport, back) => transport.finishAuth(back.searchParams);

export const transportTo = (url, options) => new StreamableHTTPClientTransport(new URL(url), options);

export async function connect(url, transport = transportTo(url)) {
  const client = new Client(
    { name: "typescript-sdk-2", version: "1" },
    { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: { pin: "2026-07-28" } } },
  );
  client.setRequestHandler("elicitation/create", () => ({ action: "accept", content: { confirmed: true } }));
  await client.connect(transport);
  return {
    tools: async () => (await client.listTools(undefined, FRESH)).tools,
    call: (name, args) => client.callTool({ name, arguments: args }),
    resources: async () => (await client.listResources(undefined, FRESH)).resources,
    read: (uri) => client.readResource({ uri }, FRESH),
    prompts: async () => (await client.listPrompts(undefined, FRESH)).prompts,
    prompt: (name) => client.getPrompt({ name }),
    close: () => client.close(),
  };
}
