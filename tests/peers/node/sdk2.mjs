// The official TypeScript SDK, 2.x: handshake, automatic, or pinned to a revision.
import { Client, SSEClientTransport, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { CAPABILITIES, NOTICES, options, run } from "./plan.mjs";

const FRESH = { cacheMode: "refresh" };

async function connect(plan, changed, handlers, noted) {
  const mode = ["legacy", "auto"].includes(plan.mode) ? plan.mode : { pin: plan.mode };
  const client = new Client(
    { name: "typescript-sdk-2", version: "1" },
    {
      capabilities: handlers.length > 0 ? CAPABILITIES : {},
      versionNegotiation: { mode },
      // On a stateless connection this opens a listen call; on a session it hears the notices.
      listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: changed } },
    },
  );
  for (const [method, answer] of handlers) client.setRequestHandler(method, answer);
  for (const method of NOTICES) client.setNotificationHandler(method, ({ params }) => noted(method, params));
  const { url, sse, command, args, env } = plan.connect;
  const remote = sse ? new SSEClientTransport(new URL(sse)) : url && new StreamableHTTPClientTransport(new URL(url), options(plan));
  const transport = remote ?? new StdioClientTransport({ command, args, env });
  await client.connect(transport);
  const isStateless = client.getNegotiatedProtocolVersion() >= "2026";
  return {
    revision: () => client.getNegotiatedProtocolVersion(),
    peer: () => client.getServerVersion(),
    listTools: async () => (await client.listTools(undefined, FRESH)).tools,
    listResources: () => client.listResources(undefined, FRESH),
    listTemplates: () => client.listResourceTemplates(undefined, FRESH),
    listPrompts: () => client.listPrompts(undefined, FRESH),
    callTool: (name, given, options) => client.callTool({ name, arguments: given }, options),
    read: (uri) => client.readResource({ uri }, FRESH),
    prompt: (name, given) => client.getPrompt({ name, arguments: given }),
    complete: (ref, argument, context) => client.complete({ ref, argument, context }),
    // A stateless client listens for the list with it: there is no other stream that would tell of it.
    subscribe: async (uri) => {
      if (!isStateless) return client.subscribeResource({ uri });
      return (await client.listen({ resourceSubscriptions: [uri], resourcesListChanged: true })).honoredFilter;
    },
    level: (level) => (isStateless ? {} : client.setLoggingLevel(level)),
    rootsChanged: () => (isStateless ? undefined : client.sendRootsListChanged()),
    close: async () => {
      await transport.terminateSession?.();
      await client.close();
    },
  };
}

await run(connect);
