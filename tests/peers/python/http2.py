"""Makes calls over HTTP/2 with the official Python SDK on httpx2, and prints one line of JSON: what was spoken, and what came of them.

    python http2.py CA URL
"""

from __future__ import annotations

import json
import ssl
import sys

import anyio
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

CALLS = 20


async def main(ca: str, url: str) -> None:
    spoken: set[str] = set()

    async def note(response: httpx2.Response) -> None:
        spoken.add(response.http_version)

    trusted = ssl.create_default_context(cafile=ca)
    hooks = {"response": [note]}
    async with (
        httpx2.AsyncClient(http1=False, http2=True, verify=trusted, event_hooks=hooks, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        with anyio.fail_after(45):
            while "up__echo" not in [tool.name for tool in (await client.list_tools()).tools]:
                await anyio.sleep(0.05)
        texts: dict[int, str] = {}

        async def call(number: int) -> None:
            result = await client.call_tool("up__echo", {"number": number})
            texts[number] = result.content[0].text

        async with anyio.create_task_group() as group:
            for number in range(CALLS):
                group.start_soon(call, number)
    print(json.dumps({"spoken": sorted(spoken), "texts": [texts[number] for number in range(CALLS)]}))


anyio.run(main, *sys.argv[1:])
