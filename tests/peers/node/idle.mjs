// A server on the HTTP server of Node with its default time-outs: one tool, no sessions.
import { createServer } from "node:http";

const TOOL = { name: "echo", inputSchema: { type: "object" } };
const RESULTS = {
  initialize: { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "idle", version: "1" } },
  ping: {},
  "tools/list": { tools: [TOOL] },
  "tools/call": { content: [{ type: "text", text: "echoed" }] },
};

const server = createServer(async (request, response) => {
  let body = "";
  for await (const piece of request) body += piece;
  if (request.method !== "POST") return response.writeHead(405).end();
  const { id, method } = JSON.parse(body);
  if (id === undefined) return response.writeHead(202).end();
  const error = { code: -32601, message: "Method not found" };
  const answer = RESULTS[method] ? { result: RESULTS[method] } : { error };
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
});
server.listen(Number(process.argv[2]), "127.0.0.1");
