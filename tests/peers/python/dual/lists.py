"""Resources, prompts and completions."""

import json
import re

import mcp_types as types
from mcp import MCPError

from asking import prompt_that_asks
from content import IMAGE, PNG, embedded, text

RESOURCES = [
    types.Resource(uri="test://static-text", name="static-text", description="Text that stays", mime_type="text/plain"),
    types.Resource(uri="test://static-binary", name="static-binary", description="A picture that stays", mime_type="image/png"),
    types.Resource(uri="test://watched-resource", name="watched-resource", description="To subscribe to", mime_type="text/plain"),
]

TEMPLATES = [
    types.ResourceTemplate(
        uri_template="test://template/{id}/data",
        name="template",
        description="Data for an id",
        mime_type="application/json",
    )
]

TEXTS = {"test://static-text": "This is the content of the static text resource.", "test://watched-resource": "watch me"}


def read(uri):
    if uri == "test://static-binary":
        contents = types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG)
    elif uri in TEXTS:
        contents = types.TextResourceContents(uri=uri, mime_type="text/plain", text=TEXTS[uri])
    elif found := re.fullmatch(r"test://template/([^/]+)/data", uri):
        value = json.dumps({"id": found[1], "templateTest": True, "data": f"Data for ID: {found[1]}"})
        contents = types.TextResourceContents(uri=uri, mime_type="application/json", text=value)
    else:
        raise MCPError(types.INVALID_PARAMS, f"there is no {uri}", {"uri": uri})
    return types.ReadResourceResult(contents=[contents])


def argument(name):
    return types.PromptArgument(name=name, description=f"The argument {name}", required=True)


PROMPTS = [
    types.Prompt(name="test_simple_prompt", description="Takes nothing"),
    types.Prompt(name="test_prompt_with_arguments", description="Takes two", arguments=[argument("arg1"), argument("arg2")]),
    types.Prompt(name="test_prompt_with_embedded_resource", description="Holds a resource", arguments=[argument("resourceUri")]),
    types.Prompt(name="test_prompt_with_image", description="Holds a picture"),
    types.Prompt(name="test_input_required_result_prompt", description="Asks first"),
]

EXTRA_PROMPT = types.Prompt(name="test_extra_prompt", description="Comes and goes")


def says(*contents):
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content) for content in contents])


async def prompt(ctx, params):
    given = params.arguments or {}
    match params.name:
        case "test_simple_prompt":
            return says(text("This is a simple prompt for testing."))
        case "test_prompt_with_arguments":
            return says(text(f"Prompt with arguments: arg1='{given.get('arg1')}', arg2='{given.get('arg2')}'"))
        case "test_prompt_with_embedded_resource":
            held = embedded(given["resourceUri"], "Embedded resource content for testing.")
            return says(held, text("Please process the embedded resource above."))
        case "test_prompt_with_image":
            return says(IMAGE, text("Please analyze the image above."))
        case "test_input_required_result_prompt":
            return await prompt_that_asks(ctx, params)
    raise MCPError(types.INVALID_PARAMS, f"no prompt {params.name}")


def completions(value):
    values = [word for word in ("paris", "park", "party", "testing") if word.startswith(value)]
    return types.CompleteResult(completion=types.Completion(values=values, total=len(values), has_more=False))
