// The official TypeScript SDK, 1.x: handshake only.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { WebSocketClientTransport } from "@modelcontextprotocol/sdk/client/websocket.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
  ResourceListChangedNotificationSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { CAPABILITIES, options, run } from "./plan.mjs";

const SCHEMAS = {
  "elicitation/create": ElicitRequestSchema,
  "sampling/createMessage": CreateMessageRequestSchema,
  "roots/list": ListRootsRequestSchema,
};

const NOTICES = [
  LoggingMessageNotificationSchema,
  ResourceListChangedNotificationSchema,
  ResourceUpdatedNotificationSchema,
];

/** Over stdio this SDK does not say which revision was agreed upon: it tells its transport, if that wants to know. */
function listening(transport) {
  const told = transport.setProtocolVersion?.bind(transport);
  transport.setProtocolVersion = (version) => {
    transport.agreed = version;
    told?.(version);
  };
  return transport;
}

async function connect(plan, changed, handlers, noted) {
  const capabilities = handlers.length > 0 ? CAPABILITIES : {};
  const client = new Client({ name: "typescript-sdk-1", version: "1" }, { capabilities });
  for (const [method, answer] of handlers) client.setRequestHandler(SCHEMAS[method], answer);
  client.setNotificationHandler(ToolListChangedNotificationSchema, changed);
  for (const schema of NOTICES) client.setNotificationHandler(schema, ({ method, params }) => noted(method, params));
  const { url, sse, ws, command, args, env } = plan.connect;
  const remote =
    (sse && new SSEClientTransport(new URL(sse))) ||
    (ws && new WebSocketClientTransport(new URL(ws))) ||
    (url && new StreamableHTTPClientTransport(new URL(url), options(plan)));
  const transport = listening(remote ?? new StdioClientTransport({ command, args, env }));
  await client.connect(transport);
  return {
    revision: () => transport.agreed,
    peer: () => client.getServerVersion(),
    listTools: async () => (await client.listTools()).tools,
    listResources: () => client.listResources(),
    listTemplates: () => client.listResourceTemplates(),
    listPrompts: () => client.listPrompts(),
    callTool: (name, given, options) => client.callTool({ name, arguments: given }, undefined, options),
    read: (uri) => client.readResource({ uri }),
    prompt: (name, given) => client.getPrompt({ name, arguments: given }),
    complete: (ref, argument, context) => client.complete({ ref, argument, context }),
    subscribe: (uri) => client.subscribeResource({ uri }),
    level: (level) => client.setLoggingLevel(level),
    rootsChanged: () => client.sendRootsListChanged(),
    close: async () => {
      await transport.terminateSession?.();
      await client.close();
    },
  };
}

await run(connect);
