"""Carries out a plan with the official Python SDK, 2.x, and prints one line of JSON: what the client saw.

The plan is the one that node/plan.mjs describes; the keys of the report are the same.
"""

from __future__ import annotations

import json
import sys
import traceback
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import anyio.to_thread
import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

Json = dict[str, Any]


class Changes:
    """Remembers changes, so that one that comes before anybody waits is not lost."""

    def __init__(self) -> None:
        self.count = 0
        self._noted = anyio.Event()

    def note(self) -> None:
        self.count += 1
        self._noted.set()
        self._noted = anyio.Event()

    async def beyond(self, seen: int, deadline: float) -> None:
        with anyio.move_on_at(deadline):
            while self.count <= seen:
                await self._noted.wait()


class Notices:
    """Remembers notices, each for one step that waits for it."""

    def __init__(self) -> None:
        self._heard: list[tuple[str, Json]] = []
        self._noted = anyio.Event()

    def note(self, method: str, params: Json) -> None:
        self._heard.append((method, params))
        self._noted.set()
        self._noted = anyio.Event()

    def _found(self, step: Json) -> Json | None:
        for place, (method, params) in enumerate(self._heard):
            fits = step.get("uri") in (None, params.get("uri")) and step.get("text", "") in json.dumps(params)
            if method == step["method"] and fits:
                del self._heard[place]
                return params
        return None

    async def take(self, step: Json) -> Json | None:
        with anyio.move_on_after(step.get("patience", 15000) / 1000):
            while (found := self._found(step)) is None:
                await self._noted.wait()
            return found
        return None


# What the steps of a run share: the plan, the notices, and what stays open until the end.
RUN: Json = {}


def plain(result: Any) -> Json:
    return result.model_dump(by_alias=True, mode="json", exclude_none=True)


def refusal(error: BaseException) -> Json:
    if isinstance(error, MCPError):
        return {"error": {"code": error.code, "message": error.message, "data": error.data}}
    return {"error": {"code": None, "message": f"{type(error).__name__}: {error}", "data": None}}


@asynccontextmanager
async def told_of_changes(client: Client) -> AsyncIterator[None]:
    """Sessions are told without asking; a stateless client opens a listen call. Either way the message handler hears it."""
    if client.protocol_version < "2026":
        yield
        return
    async with client.listen(tools_list_changed=True):
        yield


async def tool_names(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools]


async def list_tools(client: Client, changes: Changes, plan: Json, report: Json) -> None:
    """Lists tools; where some of `plan.until` are missing, lists again at each notice of a change."""
    deadline = anyio.current_time() + plan["patience"] / 1000
    report["first"] = report["tools"] = await tool_names(client)

    def missing() -> bool:
        return not set(plan["until"]) <= set(report["tools"])

    if not missing():
        return
    async with told_of_changes(client):
        seen = changes.count
        # Once more without a notice: the change may have come before the ear was open.
        report["tools"] = await tool_names(client)
        while missing() and anyio.current_time() < deadline:
            await changes.beyond(seen, deadline)
            seen = changes.count
            report["tools"] = await tool_names(client)
    report["changes"] = changes.count


async def call(client: Client, step: Json) -> Json:
    seen: Json = {"progress": []}
    with anyio.CancelScope() as scope:

        async def progressed(progress: float, total: float | None, message: str | None) -> None:
            seen["progress"].append(progress)
            if step.get("cancel"):
                scope.cancel()

        wants_progress = step.get("progress") or step.get("cancel")
        try:
            result = await client.call_tool(
                step["name"], step["arguments"], progress_callback=progressed if wants_progress else None
            )
            seen["result"] = plain(result)
        except Exception as error:
            seen.update(refusal(error))
    if scope.cancelled_caught:
        seen["error"] = {"code": None, "message": "no longer wanted", "data": None}
    return seen


async def complete(client: Client, step: Json) -> Json:
    ref = step["ref"]
    kind = types.PromptReference if ref["type"] == "ref/prompt" else types.ResourceTemplateReference
    context = (step.get("context") or {}).get("arguments")
    return {"result": plain(await client.complete(kind.model_validate(ref), step["argument"], context))}


async def together(client: Client, step: Json) -> Json:
    results: list[Json] = [{} for _ in step["steps"]]

    async def one(place: int, inner: Json) -> None:
        results[place] = await perform(client, inner)

    async with anyio.create_task_group() as tasks:
        for place, inner in enumerate(step["steps"]):
            tasks.start_soon(one, place, inner)
    return {"steps": results}


async def resources(client: Client, step: Json) -> Json:
    return {"result": plain(await client.list_resources(cache_mode="refresh"))}


async def templates(client: Client, step: Json) -> Json:
    return {"result": plain(await client.list_resource_templates(cache_mode="refresh"))}


async def prompts(client: Client, step: Json) -> Json:
    return {"result": plain(await client.list_prompts(cache_mode="refresh"))}


async def read(client: Client, step: Json) -> Json:
    return {"result": plain(await client.read_resource(step["uri"], cache_mode="refresh"))}


async def prompt(client: Client, step: Json) -> Json:
    return {"result": plain(await client.get_prompt(step["name"], step.get("arguments")))}


async def wait(_client: Client, step: Json) -> Json:
    """Goes on when an address has answered."""
    answer = await anyio.to_thread.run_sync(lambda: urllib.request.urlopen(step["url"]).read())
    return {"result": answer.decode()}


async def subscribe(client: Client, step: Json) -> Json:
    """A stateless client listens for the list with it: there is no other stream that would tell of it."""
    if client.protocol_version < "2026":
        return {"result": plain(await client.subscribe_resource(step["uri"]))}
    listening = client.listen(resource_subscriptions=[step["uri"]], resources_list_changed=True)
    return {"result": plain((await RUN["open"].enter_async_context(listening)).honored)}


async def level(client: Client, step: Json) -> Json:
    if client.protocol_version < "2026":
        return {"result": plain(await client.set_logging_level(step["level"]))}
    return {"result": {}}


async def roots(client: Client, step: Json) -> Json:
    RUN["plan"]["roots"] = step["roots"]
    if client.protocol_version < "2026":
        await client.send_roots_list_changed()
    return {"result": {}}


async def hears(_client: Client, step: Json) -> Json:
    return {"result": await RUN["notices"].take(step)}


VERBS: dict[str, Callable[[Client, Json], Awaitable[Json]]] = {
    verb.__name__: verb
    for verb in (
        call, complete, together, resources, templates, prompts, read, prompt, subscribe, level, roots, hears, wait,
    )
}


async def perform(client: Client, step: Json) -> Json:
    try:
        return await VERBS[step["do"]](client, step)
    except Exception as error:
        return refusal(error)


def callbacks(plan: Json, report: Json) -> Json:
    """What answers questions, as arguments of the client; each question is noted by its method."""
    if plan.get("answers") is None:
        return {}
    accepts = plan["answers"] == "accept"

    async def elicited(context: Any, params: Any) -> types.ElicitResult:
        report["asked"].append("elicitation/create")
        if not accepts:
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async def sampled(context: Any, params: Any) -> types.CreateMessageResult | types.ErrorData:
        report["asked"].append("sampling/createMessage")
        if not accepts:
            return types.ErrorData(code=-1, message="not today")
        says = types.TextContent(type="text", text="Ada says so")
        return types.CreateMessageResult(role="assistant", content=says, model="ada", stop_reason="endTurn")

    async def rooted(context: Any) -> types.ListRootsResult:
        report["asked"].append("roots/list")
        uris = plan.get("roots") or (["file:///home/ada"] if accepts else [])
        return types.ListRootsResult(roots=[types.Root(uri=uri, name="Ada") for uri in uris])

    return {"elicitation_callback": elicited, "sampling_callback": sampled, "list_roots_callback": rooted}


async def carry_out(plan: Json, report: Json) -> None:
    changes, notices = Changes(), Notices()

    async def heard(message: Any) -> None:
        method = getattr(message, "method", None)
        if method == "notifications/tools/list_changed":
            changes.note()
        elif method is not None:
            notices.note(method, plain(message).get("params") or {})

    where = plan["connect"]
    if url := where.get("url"):
        headers = {"Authorization": f"Bearer {plan['token']}"} if plan.get("token") else None
        peer = streamable_http_client(url, http_client=create_mcp_http_client(headers=headers))
    elif sse := where.get("sse"):
        peer = sse_client(sse)
    else:
        peer = StdioServerParameters(command=where["command"], args=where["args"], env=where.get("env"))
    info = types.Implementation(name="python-sdk-2", version="1")
    answering = callbacks(plan, report)
    answering["message_handler"] = heard
    async with Client(peer, mode=plan["mode"], client_info=info, **answering) as client, AsyncExitStack() as stack:
        RUN.update(plan=plan, notices=notices, open=stack)
        report["revision"] = client.protocol_version
        report["peer"] = plain(client.server_info) if client.server_info else None
        await list_tools(client, changes, plan, report)
        for step in plan["steps"]:
            report["steps"].append(await perform(client, step))


def main() -> None:
    report: Json = {
        "revision": None, "peer": None, "first": [], "tools": [], "changes": 0, "asked": [], "steps": [],
        "fatal": None,
    }
    try:
        anyio.run(carry_out, json.loads(sys.argv[1]), report)
    except BaseException:
        report["fatal"] = traceback.format_exc()
    print(json.dumps(report), flush=True)


main()
