// The official TypeScript SDK, 2.x, pinned to the stateless revision, behind a plain face.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const FRESH = { cacheMode: "refresh" };

export const finish = (transport, back) => transport.finishAuth(back.searchParams);

export const transportTo = (url, options) => new StreamableHTTPClientTransport(new URL(url), options);

/** There are no sessions, and what a token lacks the SDK asks for by itself. */
export const isGone = () => false;
export const isShort = () => false;

/** Whoever has a `visit` can be sent to a page; `changed` is told that other tools are there. */
export async function connect(url, transport = transportTo(url), { visit, changed } = {}) {
  const client = new Client(
    { name: "typescript-sdk-2", version: "1" },
    {
      capabilities: { elicitation: { form: {}, ...(visit && { url: {} }) } },
      versionNegotiation: { mode: { pin: "2026-07-28" } },
      ...(changed && { listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: changed } } }),
    },
  );
  client.setRequestHandler("elicitation/create", async ({ params }) => {
    if (params.mode !== "url") return { action: "accept", content: { confirmed: true } };
    await visit(params.url);
    return { action: "accept" };
  });
  await client.connect(transport);
  return {
    tools: async () => (await client.listTools(undefined, FRESH)).tools,
    call: (name, args) => client.callTool({ name, arguments: args }),
    resources: async () => (await client.listResources(undefined, FRESH)).resources,
    read: (uri) => client.readResource({ uri }, FRESH),
    prompts: async () => (await client.listPrompts(undefined, FRESH)).prompts,
    prompt: (name, given) => client.getPrompt({ name, arguments: given }),
    close: () => client.close(),
  };
}
