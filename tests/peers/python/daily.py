"""A client with the OAuth code of the official Python SDK, for a day in short: as conformance/daily.mjs, with the same line of JSON.

    daily.py URL
"""

from __future__ import annotations

import json
import sys

import anyio
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from visitor import Visitor, logging_in, reason

LIMIT = 120
PAUSE = 0.2
ECHO = {"day": 1}


async def main(url: str) -> None:
    visitor = Visitor()
    auth = logging_in(url, visitor)
    seen: dict[str, object] = {"calls": 0, "refreshed": False}
    try:
        async with create_mcp_http_client(auth=auth) as http, Client(streamable_http_client(url, http_client=http)) as client:
            seen["tools"] = [tool.name for tool in (await client.list_tools()).tools]
            assert visitor.tokens
            first = visitor.tokens.access_token
            while visitor.tokens.access_token == first:
                result = await client.call_tool("up__echo", ECHO)
                assert not result.is_error, result
                seen["calls"] += 1
                await anyio.sleep(PAUSE)
            await client.call_tool("up__echo", ECHO)
            seen["refreshed"] = True
            seen["visits"] = visitor.visits
            await visitor.revoke(str(auth.context.oauth_metadata.revocation_endpoint))
            while True:
                await client.call_tool("up__echo", ECHO)
                await anyio.sleep(PAUSE)
    except BaseException as error:
        if not visitor.is_away:
            raise
        seen["end"] = type(reason(error)).__name__
        seen["visitsThen"] = visitor.visits
    print(json.dumps(seen))


async def within_limit() -> None:
    with anyio.fail_after(LIMIT):
        await main(sys.argv[1])


anyio.run(within_limit)
