"""The tools that the suite's scenarios call, apart from those that ask."""

import anyio
import mcp_types as types

from content import AUDIO, IMAGE, embedded, failed, said, text
from questions import is_stateless

NOTHING = {"type": "object", "properties": {}}

RICH = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

MIXED = ("test://mixed-content-resource", '{"test":"data","value":123}', "application/json")


def says(*content):
    """A tool that says this."""

    async def run(_ctx, _params, _world):
        return said(*content)

    return run


async def with_logs(ctx, _params, _world):
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.session.send_log_message("info", line, related_request_id=ctx.request_id)
        await anyio.sleep(0.05)
    return said(text("three lines logged"))


async def with_progress(ctx, _params, _world):
    for progress in (0, 50, 100):
        await ctx.session.report_progress(progress, 100, f"{progress} of 100")
        await anyio.sleep(0.05)
    return said(text("three steps done"))


async def fails(_ctx, _params, _world):
    return failed("This tool intentionally returns an error for testing")


async def hangs_up(ctx, _params, _world):
    """Closes the stream of its own call, where that can be resumed, and answers later than anybody waits without one."""
    if ctx.close_sse_stream is not None and not is_stateless(ctx):
        await ctx.close_sse_stream()
    await anyio.sleep(2.5)
    return said(text("answered after the stream was closed"))


async def region(_ctx, params, _world):
    return said(text(f"region {(params.arguments or {}).get('region')}"))


def changes(kind):
    """A tool that changes a list."""

    async def run(_ctx, _params, world):
        await world.change(kind)
        return said(text(f"the list of {kind} has changed"))

    return run


# Name, description, schema (nothing: no arguments) and what is done.
TOOLS = [
    ("test_simple_text", "Returns text", None, says(text("This is a simple text response for testing."))),
    ("test_image_content", "Returns an image", None, says(IMAGE)),
    ("test_audio_content", "Returns a sound", None, says(AUDIO)),
    (
        "test_embedded_resource",
        "Returns a resource inside its result",
        None,
        says(embedded("test://embedded-resource", "This is an embedded resource content.")),
    ),
    (
        "test_multiple_content_types",
        "Returns text, an image and a resource",
        None,
        says(text("Multiple content types test:"), IMAGE, embedded(*MIXED)),
    ),
    ("test_tool_with_logging", "Logs three lines", None, with_logs),
    ("test_logging_tool", "Logs three lines", None, with_logs),
    ("test_tool_with_progress", "Reports progress three times", None, with_progress),
    ("test_error_handling", "Fails", None, fails),
    ("test_reconnection", "Closes its stream before it answers", None, hangs_up),
    ("json_schema_2020_12_tool", "Has a schema with everything", RICH, says(text("never mind"))),
    (
        "test_header_parameter",
        "Has a parameter that is told in a header too",
        {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}},
        region,
    ),
    ("test_trigger_tool_change", "Changes the list of tools", None, changes("tools")),
    ("test_trigger_prompt_change", "Changes the list of prompts", None, changes("prompts")),
]

EXTRA = ("test_extra_tool", "Comes and goes", None, says(text("still here")))


def listed(tool):
    name, description, schema, _run = tool
    return types.Tool(name=name, description=description, input_schema=schema or NOTHING)
