"""A person with a client on the official Python SDK, whose OAuth code is its own: as conformance/person.mjs, with the same lines.

    person.py URL NAME
"""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.to_thread
import httpx2
import mcp_types as types
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from visitor import Visitor, logging_in, reason

Json = dict[str, Any]

PAUSE = 0.2
# A stream may be quiet for as long as it likes.
PATIENCE = httpx2.Timeout(60, read=None)


class Person:
    """What each line has done."""

    def __init__(self, url: str, name: str) -> None:
        self.visitor = Visitor(name)
        self.auth = logging_in(url, self.visitor)
        self.changes = 0
        self._client: Client | None = None
        self._url = url

    def connected(self) -> Client:
        http = httpx2.AsyncClient(
            transport=self.visitor.ear, auth=self.auth, timeout=PATIENCE, headers={"accept-encoding": "identity"}
        )
        peer = streamable_http_client(self._url, http_client=http)
        return Client(peer, elicitation_callback=self.sent, message_handler=self.noted)

    async def sent(self, context: Any, params: Any) -> types.ElicitResult:
        await self.visitor.visit(params.url)
        return types.ElicitResult(action="accept")

    async def noted(self, message: Any) -> None:
        self.changes += getattr(message, "method", None) == "notifications/tools/list_changed"

    async def tools(self, client: Client, step: Json) -> Json:
        return {"tools": [tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools]}

    async def until(self, client: Client, step: Json) -> Json:
        while step["tool"] not in (listed := await self.tools(client, step))["tools"]:
            await anyio.sleep(PAUSE)
        return listed

    async def call(self, client: Client, step: Json) -> Json:
        result = await client.call_tool(step["name"], step["arguments"])
        return {"isError": bool(result.is_error), "text": result.content[0].text}

    async def prompt(self, client: Client, step: Json) -> Json:
        return {"text": (await client.get_prompt(step["name"], step["arguments"])).messages[0].content.text}

    async def spend(self, client: Client, step: Json) -> Json:
        first, calls = self._token(), 0
        while self._token() == first:
            result = await self.call(client, step)
            assert not result["isError"], result
            calls += 1
            await anyio.sleep(PAUSE)
        return {"calls": calls}

    def _token(self) -> str:
        assert self.visitor.tokens
        return self.visitor.tokens.access_token

    async def revoke(self, client: Client, step: Json) -> Json:
        await self.visitor.revoke(str(self.auth.context.oauth_metadata.revocation_endpoint))
        return {}

    async def refused(self, client: Client, step: Json) -> Json:
        calls = 0
        while True:
            try:
                await self.call(client, step)
            except Exception as error:
                return {"calls": calls, "end": type(reason(error)).__name__}
            calls += 1
            await anyio.sleep(PAUSE)

    async def tell(self, client: Client, step: Json) -> Json:
        visitor = self.visitor
        ear = visitor.ear
        told = {"heard": ear.heard(), "own": sorted(ear.own | ear.tokens), "tokens": sorted(ear.tokens)}
        return told | {"pages": visitor.pages, "visits": visitor.visits, "changes": self.changes}


async def main(url: str, name: str) -> None:
    person = Person(url, name)
    verbs: dict[str, Callable[[Client, Json], Awaitable[Json]]] = {
        verb.__name__: verb
        for verb in (
            person.tools, person.until, person.call, person.prompt, person.spend, person.revoke, person.refused,
            person.tell,
        )
    }
    client: Client | None = None
    while line := await anyio.to_thread.run_sync(sys.stdin.readline):
        step = json.loads(line)
        try:
            if client is None:
                client = await person.connected().__aenter__()
            said = await verbs[step["do"]](client, step)
        except Exception as error:
            why = reason(error)
            said = {"error": f"{type(why).__name__}: {why}"}
        print(json.dumps(said), flush=True)


anyio.run(main, *sys.argv[1:])
