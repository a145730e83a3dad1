// HTTP/2 by node's own library, over TLS: an MCP server on the official SDK, or a client that makes calls over one connection.
//   node http2.mjs serve CERT KEY   prints the port that it listens on
//   node http2.mjs call CA URL      prints one line of JSON: what was spoken, and what came of the calls

import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import http2 from "node:http2";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const CALLS = 20;

function made() {
  const server = new Server({ name: "node-http2", version: "1" }, { capabilities: { tools: {} } });
  const tool = { name: "echo", inputSchema: { type: "object" } };
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [tool] }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
    const progressToken = params._meta?.progressToken;
    if (progressToken !== undefined) {
      await extra.sendNotification({ method: "notifications/progress", params: { progressToken, progress: 1 } });
    }
    return { content: [{ type: "text", text: JSON.stringify(params.arguments) }] };
  });
  return server;
}

function serve(cert, key) {
  const sessions = new Map();
  const options = { cert: readFileSync(cert), key: readFileSync(key) };
  const server = http2.createSecureServer(options, async (request, response) => {
    let transport = sessions.get(request.headers["mcp-session-id"]);
    if (transport === undefined) {
      const onsessioninitialized = (id) => sessions.set(id, transport);
      transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, onsessioninitialized });
      await made().connect(transport);
    }
    await transport.handleRequest(request, response);
  });
  server.listen(0, "127.0.0.1", () => console.log(server.address().port));
}

async function call(ca, url) {
  const { origin, pathname } = new URL(url);
  const connection = http2.connect(origin, { ca: readFileSync(ca) });
  const post = (headers, message) =>
    new Promise((resolve, reject) => {
      const kinds = { "content-type": "application/json", accept: "application/json, text/event-stream" };
      const stream = connection.request({ ":method": "POST", ":path": pathname, ...kinds, ...headers });
      let [head, text] = [{}, ""];
      stream.setEncoding("utf8");
      stream.on("response", (headers) => (head = headers));
      stream.on("data", (piece) => (text += piece));
      stream.on("end", () => resolve({ head, text }));
      stream.on("error", reject);
      stream.end(JSON.stringify({ jsonrpc: "2.0", ...message }));
    });
  const answer = ({ head, text }) => {
    const isStream = head["content-type"].startsWith("text/event-stream");
    const data = text.split(/\r?\n/).filter((line) => line.startsWith("data: {"));
    return JSON.parse(isStream ? data.at(-1).slice("data: ".length) : text).result;
  };
  const clientInfo = { name: "node-http2", version: "1" };
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo };
  const greeted = await post({}, { id: 0, method: "initialize", params });
  const known = { "mcp-session-id": greeted.head["mcp-session-id"], "mcp-protocol-version": "2025-11-25" };
  const noted = await post(known, { method: "notifications/initialized" });
  const deadline = Date.now() + 45_000;
  for (let tools = []; !tools.includes("up__echo") && Date.now() < deadline; ) {
    tools = answer(await post(known, { id: 1, method: "tools/list" })).tools.map(({ name }) => name);
  }
  const calls = Array.from({ length: CALLS }, (_, number) => {
    const meta = number % 2 ? { _meta: { progressToken: number } } : {};
    const params = { name: "up__echo", arguments: { number }, ...meta };
    return post(known, { id: 2 + number, method: "tools/call", params });
  });
  const texts = (await Promise.all(calls)).map((one) => answer(one).content[0].text);
  console.log(JSON.stringify({ spoken: connection.alpnProtocol, noted: noted.head[":status"], texts }));
  connection.close();
}

const [what, ...rest] = process.argv.slice(2);
await { serve, call }[what](...rest);
