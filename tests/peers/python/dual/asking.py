"""The tools that ask, and the prompt that does."""

import json

import mcp_types as types

from content import said, text
from questions import ROOTS, asking, can_be_asked, elicit, live, sample

STRING = {"type": "string"}
BOOLEAN = {"type": "boolean"}

DEFAULTS = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}

TITLED = [{"const": value, "title": title} for value, title in (("value1", "First"), ("value2", "Second"), ("value3", "Third"))]

ENUMS = {
    "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
    "titledSingle": {"type": "string", "oneOf": TITLED},
    "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
    "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
}

NAME = elicit("What is your name?", {"name": STRING})
COLOR = elicit("What is your favorite color?", {"color": STRING})
CONFIRM = elicit("Please confirm", {"ok": BOOLEAN})


def completed(form):
    return said(text(f"Elicitation completed: action={form.action}, content={json.dumps(form.content)}"))


def asks(questions, done, state=None):
    """A tool that asks by `input_required` and then is done."""

    async def run(ctx, params, _world):
        return asking(ctx, params, questions, done, state)

    return run


def asks_live(question):
    """A tool that asks a session."""

    async def run(ctx, _params, _world):
        return completed(await live(ctx, question))

    return run


async def prompted(ctx, params, _world):
    """Asks the client's model what the caller says."""
    answer = await live(ctx, sample((params.arguments or {}).get("prompt", ""), 100))
    return said(text(f"LLM response: {answer.content.model_dump_json()}"))


async def formed(ctx, params, _world):
    """Asks the user what the caller says."""
    question = elicit((params.arguments or {}).get("message", ""), {"username": STRING, "email": STRING})
    form = await live(ctx, question)
    return said(text(f"User response: action={form.action}, content={json.dumps(form.content)}"))


async def rounds(ctx, params, _world):
    """Two rounds, the first one's answer kept in the state."""
    known = json.loads(params.request_state) if params.request_state else {"round": 1}

    def ends(name):
        return lambda answers: said(text(f"{name} likes {answers['step2'].content['color']}"))

    def second(answers):
        name = answers["step1"].content["name"]
        return asking(ctx, params, {"step2": COLOR}, ends(name), json.dumps({"round": 2, "name": name}))

    if known["round"] == 1:
        return asking(ctx, params, {"step1": NAME}, second, json.dumps({"round": 1}))
    return asking(ctx, params, {"step2": COLOR}, ends(known["name"]), json.dumps(known))


async def what_can_be_asked(ctx, params, _world):
    """Asks what the client can be asked, and nothing else."""
    questions = {"name": NAME, "greeting": sample("Generate a greeting", 50)}
    able = {key: question for key, question in questions.items() if can_be_asked(ctx, question)}
    return asking(ctx, params, able, lambda answers: said(text(f"{len(answers)} answers")))


def required(*names):
    return {"type": "object", "properties": {name: STRING for name in names}, "required": list(names)}


SEVERAL = {"user_name": NAME, "greeting": sample("Generate a greeting", 50), "client_roots": ROOTS}

# Name, description, schema (nothing: no arguments) and what is done.
ASKING = [
    ("test_sampling", "Asks the client's model", required("prompt"), prompted),
    ("test_elicitation", "Asks the user", required("message"), formed),
    (
        "test_elicitation_sep1034_defaults",
        "Asks with defaults",
        None,
        asks_live(elicit("Please check", DEFAULTS, [])),
    ),
    (
        "test_elicitation_sep1330_enums",
        "Asks with lists to choose from",
        None,
        asks_live(elicit("Please choose", ENUMS, [])),
    ),
    (
        "test_input_required_result_elicitation",
        "Asks the user's name",
        None,
        asks({"user_name": NAME}, lambda answers: said(text(f"Hello, {(answers['user_name'].content or {}).get('name')}!"))),
    ),
    (
        "test_input_required_result_sampling",
        "Asks the client's model for a capital",
        None,
        asks(
            {"capital_question": sample("What is the capital of France?", 100)},
            lambda answers: said(text(answers["capital_question"].content.model_dump_json())),
        ),
    ),
    (
        "test_input_required_result_list_roots",
        "Asks for the client's roots",
        None,
        asks(
            {"client_roots": ROOTS},
            lambda answers: said(text(" ".join(str(root.uri) for root in answers["client_roots"].roots))),
        ),
    ),
    (
        "test_input_required_result_request_state",
        "Asks, with state",
        None,
        asks({"confirm": CONFIRM}, lambda _answers: said(text("state-ok")), "request-state"),
    ),
    (
        "test_input_required_result_multiple_inputs",
        "Asks three kinds of question at once",
        None,
        asks(SEVERAL, lambda answers: said(text(f"{len(answers)} answers")), "several"),
    ),
    ("test_input_required_result_multi_round", "Asks twice", None, rounds),
    (
        "test_input_required_result_tampered_state",
        "Asks, with state that must not be changed",
        None,
        asks({"confirm": CONFIRM}, lambda _answers: said(text("untouched")), "tampered-state"),
    ),
    ("test_input_required_result_capabilities", "Asks what the client can be asked", None, what_can_be_asked),
    (
        "test_streaming_elicitation",
        "Asks the user",
        None,
        asks({"form": elicit("Go on?", {"ok": BOOLEAN})}, lambda answers: completed(answers["form"])),
    ),
    (
        "test_missing_capability",
        "Cannot do without the client's model",
        None,
        asks({"answer": sample("Say something", 10)}, lambda _answers: said(text("it said something"))),
    ),
]


async def prompt_that_asks(ctx, params):
    question = elicit("What context should the prompt use?", {"context": STRING})

    def done(answers):
        context = (answers["user_context"].content or {}).get("context")
        message = types.PromptMessage(role="user", content=text(f"In the context of {context}"))
        return types.GetPromptResult(messages=[message])

    return asking(ctx, params, {"user_context": question}, done)
