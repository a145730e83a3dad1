"""The suite's server on the official Python SDK, both eras at one endpoint:

    python dual http|stdio

Over HTTP it prints its endpoint.
"""

import socket
import sys
import warnings

import anyio
import uvicorn
from mcp.server.stdio import stdio_server

from events import Events
from server import Dual


def over_http() -> None:
    app = Dual().streamable_http_app(event_store=Events(), retry_interval=100)
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    config = uvicorn.Config(app, log_level="error", lifespan="on")
    anyio.run(lambda: uvicorn.Server(config).serve(sockets=[listener]))


async def over_stdio() -> None:
    server = Dual()
    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())


warnings.simplefilter("ignore")
if sys.argv[1] == "http":
    over_http()
else:
    anyio.run(over_stdio)
