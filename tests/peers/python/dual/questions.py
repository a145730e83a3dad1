"""Questions of both eras: a session is asked live, a stateless client by `input_required`, and neither the other way."""

import mcp_types as types
from mcp import MCPError
from mcp.shared.message import ServerMessageMetadata


def is_stateless(ctx):
    return ctx.protocol_version >= "2026"


def elicit(message, properties, required=None):
    schema = {"type": "object", "properties": properties}
    schema["required"] = list(properties) if required is None else required
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def sample(prompt, max_tokens):
    message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=prompt))
    return types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(messages=[message], max_tokens=max_tokens)
    )


ROOTS = types.ListRootsRequest()

RESULTS = {
    "elicitation/create": types.ElicitResult,
    "sampling/createMessage": types.CreateMessageResult,
    "roots/list": types.ListRootsResult,
}

NEEDED = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}


def can_be_asked(ctx, question):
    return getattr(ctx.session.client_capabilities, NEEDED[question.method], None) is not None


async def live(ctx, question):
    """Asks on the stream of the call that it belongs to, and waits; to a stateless client the SDK sends no request."""
    metadata = ServerMessageMetadata(related_request_id=ctx.request_id)
    return await ctx.session.send_request(question, RESULTS[question.method], metadata=metadata)


def asking(ctx, params, questions, done, state=None):
    """Runs `done` with the answers once there is one of the right kind for each question, and asks for what is missing."""
    if not is_stateless(ctx):
        raise MCPError(types.INTERNAL_ERROR, "a session knows no input_required")
    given = params.input_responses or {}
    answers = {key: given[key] for key, one in questions.items() if isinstance(given.get(key), RESULTS[one.method])}
    missing = {key: one for key, one in questions.items() if key not in answers}
    if not missing:
        return done(answers)
    for question in missing.values():
        require(ctx, question)
    return types.InputRequiredResult(input_requests=missing, request_state=state)


def require(ctx, question):
    if can_be_asked(ctx, question):
        return
    data = {"requiredCapabilities": {NEEDED[question.method]: {}}}
    raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, f"this needs {NEEDED[question.method]}", data)
