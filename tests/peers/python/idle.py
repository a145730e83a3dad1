"""A server on uvicorn with its default time-outs, or another one for idle connections: one tool, no sessions."""

import json
import sys

import uvicorn

TOOL = {"name": "echo", "inputSchema": {"type": "object"}}
IDENTITY = {"name": "idle", "version": "1"}
RESULTS = {
    "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": IDENTITY},
    "ping": {},
    "tools/list": {"tools": [TOOL]},
    "tools/call": {"content": [{"type": "text", "text": "echoed"}]},
}


def answer(body):
    """The status and the body of an answer."""
    frame = json.loads(body)
    if "id" not in frame:
        return 202, b""
    result = RESULTS.get(frame["method"])
    outcome = {"error": {"code": -32601, "message": "Method not found"}} if result is None else {"result": result}
    return 200, json.dumps({"jsonrpc": "2.0", "id": frame["id"], **outcome}).encode()


async def app(scope, receive, send):
    """Answers one request."""
    body, more = b"", True
    while more:
        piece = await receive()
        body, more = body + piece.get("body", b""), piece.get("more_body", False)
    status, said = answer(body) if scope["method"] == "POST" else (405, b"")
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(said)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": said})


if __name__ == "__main__":
    others = {"timeout_keep_alive": int(sys.argv[2])} if len(sys.argv) > 2 else {}
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), lifespan="off", log_level="error", **others)
