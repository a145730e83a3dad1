"""One server for both eras, on the official SDK."""

import contextlib

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.server import NotificationOptions, Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, PromptsListChanged, ToolsListChanged

from asking import ASKING
from lists import EXTRA_PROMPT, PROMPTS, RESOURCES, TEMPLATES, completions, prompt, read
from tools import EXTRA, TOOLS, listed


class World:
    """What all connections share: the lists that change, and who must be told."""

    def __init__(self):
        self.extra = {"tools": False, "prompts": False}
        self.sessions = []
        self.bus = InMemorySubscriptionBus()

    async def change(self, kind):
        self.extra[kind] = not self.extra[kind]
        await self.bus.publish(ToolsListChanged() if kind == "tools" else PromptsListChanged())
        for session in self.sessions:
            tell = session.send_tool_list_changed if kind == "tools" else session.send_prompt_list_changed
            with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                await tell()


class Dual(Server):
    def __init__(self):
        self.world = World()
        super().__init__(
            "conformance-python",
            version="1.0.0",
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            on_list_resources=self.list_resources,
            on_list_resource_templates=self.list_templates,
            on_read_resource=self.read_resource,
            on_subscribe_resource=self.nothing,
            on_unsubscribe_resource=self.nothing,
            on_subscriptions_listen=ListenHandler(self.world.bus),
            on_list_prompts=self.list_prompts,
            on_get_prompt=self.get_prompt,
            on_completion=self.complete,
            on_set_logging_level=self.nothing,
        )
        self.add_notification_handler("notifications/initialized", types.NotificationParams, self.initialized)
        # State that goes through the client is sealed, so that a change is seen.
        self.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=self.name))

    def create_initialization_options(self, *_args, **_named):
        changing = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
        return super().create_initialization_options(changing)

    def tools(self):
        return [*TOOLS, *ASKING, *([EXTRA] if self.world.extra["tools"] else [])]

    async def initialized(self, ctx, _params):
        self.world.sessions.append(ctx.session)

    async def nothing(self, _ctx, _params):
        return types.EmptyResult()

    async def list_tools(self, _ctx, _params):
        return types.ListToolsResult(tools=[listed(tool) for tool in self.tools()])

    async def call_tool(self, ctx, params):
        for name, _description, _schema, run in self.tools():
            if name == params.name:
                return await run(ctx, params, self.world)
        raise MCPError(types.INVALID_PARAMS, f"no tool {params.name}")

    async def list_resources(self, _ctx, _params):
        return types.ListResourcesResult(resources=RESOURCES)

    async def list_templates(self, _ctx, _params):
        return types.ListResourceTemplatesResult(resource_templates=TEMPLATES)

    async def read_resource(self, _ctx, params):
        return read(str(params.uri))

    async def list_prompts(self, _ctx, _params):
        return types.ListPromptsResult(prompts=[*PROMPTS, *([EXTRA_PROMPT] if self.world.extra["prompts"] else [])])

    async def get_prompt(self, ctx, params):
        return await prompt(ctx, params)

    async def complete(self, _ctx, params):
        return completions(params.argument.value)
