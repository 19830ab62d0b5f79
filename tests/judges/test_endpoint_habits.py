"""A scripted server for each habit of an endpoint, which answers in the provider's own words."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest

from ragspan.judges import SmallJudge
from ragspan.metrics import Completeness, ContextAdherence

GROUNDED = {"grounding": {"reasoning": "stated", "verdict": "grounded"}}
COMPLETE = {"completeness": {"reasoning": "all there", "value": 1}}


def error(message, **more):
    return {"error": {"message": message, "type": "invalid_request_error", **more}}


def google(message, **more):
    return [{"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT", **more}}]


def fastapi(name):
    """As FastAPI rejects a field, before the server's own code sees it."""
    return {"detail": [{"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted"}]}


def mistral(name):
    return {"object": "error", "message": fastapi(name), "type": "invalid_request_error", "param": None, "code": None}


def vllm(message):
    return {"object": "error", "message": message, "type": "BadRequestError", "param": None, "code": 400}


def litellm(message):
    return error(f"litellm.UnsupportedParamsError: {message} To drop these, set `litellm.drop_params=True`", code="400")


@dataclass(frozen=True, kw_only=True)
class Habit:
    """How an endpoint refuses a parameter."""

    provider: str
    refuses: str
    """A parameter, or `json_schema` or `json_object`, a kind of the format."""
    body: object
    status: int = 400
    sent: dict = field(default_factory=dict)
    """Further fields of the user's."""

    def applies_to(self, request):
        kind = request.get("response_format", {}).get("type")
        return self.refuses in request or self.refuses == kind


STRICT = "In context=(), 'additionalProperties' is required to be supplied and to be false."
BUDGET = "The compiled grammar is too large, which would cause performance issues."
STATES = "The specified schema produces a constraint that has too many states for serving."
OLD_VERSION = "response_format value as json_schema is enabled only for api versions 2024-08-01-preview and later"
TWO_NAMES = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
NO_FIELD = 'Invalid JSON payload received. Unknown name "{}": Cannot find field.'
REASONING = (
    "Unsupported value: 'temperature' does not support 0.7 with this model. Only the default (1) value is supported."
)
ENTERED = "Unable to submit request because candidateCount must be 1 but the entered value was 3. Update the value."
RANGE = "Unable to submit request because it has a candidateCount value of 3 but the supported range is from 1 to 1."
OPEN_ROUTER = "No endpoints found that can handle the requested parameters."
BEDROCK = "The model returned the following errors: {}"

HABITS = [
    # OpenAI
    Habit(provider="OpenAI", refuses="response_format", body=error("Invalid parameter", param="response_format")),
    Habit(
        provider="OpenAI", refuses="json_schema", body=error(f"Invalid schema for response_format 'answer': {STRICT}")
    ),
    Habit(provider="OpenAI", refuses="n", body=error("Unsupported parameter.", param="n")),
    Habit(
        provider="OpenAI", refuses="temperature", body=error(REASONING, param="temperature", code="unsupported_value")
    ),
    Habit(provider="OpenAI", refuses="max_tokens", body=error(TWO_NAMES, param="max_tokens"), sent={"max_tokens": 900}),
    Habit(
        provider="OpenAI",
        refuses="reasoning_effort",
        body=error("Unrecognized request argument supplied: reasoning_effort"),
        sent={"reasoning_effort": "low"},
    ),
    Habit(
        provider="OpenAI", refuses="seed", body=error("Unsupported parameter: 'seed'", param="seed"), sent={"seed": 7}
    ),
    # Azure
    Habit(provider="Azure", refuses="json_schema", body=error(OLD_VERSION, code="BadRequest", param="")),
    Habit(
        provider="Azure",
        refuses="json_object",
        body=error("Invalid parameter: 'response_format' of type 'json_object' is not supported with this model."),
    ),
    # Google
    Habit(provider="Gemini", refuses="n", body=google("Multiple candidates is not enabled for this model")),
    Habit(provider="Gemini", refuses="n", body=google("Only one candidate can be specified")),
    Habit(provider="Gemini", refuses="n", body=google(NO_FIELD.format("n"), details=[{"fieldViolations": [{}]}])),
    Habit(provider="Gemini", refuses="seed", body=google(NO_FIELD.format("seed")), sent={"seed": 7}),
    Habit(provider="Gemini", refuses="json_schema", body=google(STATES)),
    Habit(
        provider="Gemini",
        refuses="json_schema",
        body=google("Unknown name \"anyOf\" at 'generation_config.response_schema'"),
    ),
    Habit(provider="Gemini", refuses="response_format", body=google("Request contains an invalid argument.")),
    Habit(provider="Vertex AI", refuses="n", body=google(ENTERED)),
    Habit(provider="Vertex AI", refuses="n", body=google(RANGE)),
    # Bedrock, Anthropic
    Habit(
        provider="Bedrock", refuses="temperature", body={"message": "This model doesn't support the temperature field."}
    ),
    Habit(
        provider="Bedrock",
        refuses="temperature",
        body={"message": BEDROCK.format("`temperature` is deprecated for this model.")},
    ),
    Habit(provider="Bedrock", refuses="json_schema", body={"message": BEDROCK.format("output_config: Extra inputs")}),
    Habit(
        provider="Anthropic",
        refuses="temperature",
        body=error("`temperature` may only be set to 1 when thinking is enabled."),
    ),
    Habit(provider="Anthropic", refuses="json_schema", body=error(BUDGET)),
    # Mistral
    Habit(provider="Mistral", refuses="n", status=422, body=mistral("n")),
    Habit(provider="Mistral", refuses="response_format", status=422, body=mistral("response_format")),
    Habit(
        provider="Mistral",
        refuses="max_completion_tokens",
        status=422,
        body=mistral("max_completion_tokens"),
        sent={"max_completion_tokens": 900},
    ),
    Habit(provider="Mistral", refuses="seed", status=422, body=mistral("seed"), sent={"seed": 7}),
    Habit(
        provider="Mistral",
        refuses="n",
        status=422,
        body={"object": "error", "message": json.dumps(fastapi("n")), "type": "internal_error_proxy", "code": "1000"},
    ),
    # Groq, Cerebras, xAI
    Habit(provider="Groq", refuses="n", body=error("'n' : number must be at most 1")),
    Habit(
        provider="Groq", refuses="json_schema", body=error("This model does not support response format `json_schema`.")
    ),
    Habit(
        provider="Groq",
        refuses="response_format",
        body=error(
            "'response_format' : one of the following must be satisfied[('response_format.type' : value is ...)]"
        ),
    ),
    Habit(
        provider="Groq", refuses="logprobs", body=error("property 'logprobs' is unsupported"), sent={"logprobs": True}
    ),
    Habit(
        provider="Cerebras",
        refuses="n",
        body={"message": "n: property 'n' is unsupported", "param": "validation_error", "code": "wrong_api_format"},
    ),
    Habit(
        provider="xAI",
        refuses="presence_penalty",
        body={"code": "invalid argument", "error": "Argument not supported on this model: presencePenalty"},
        sent={"presence_penalty": 0.1},
    ),
    # DeepSeek
    Habit(provider="DeepSeek", refuses="json_schema", body=error("This response_format type is unavailable now")),
    Habit(
        provider="DeepSeek", refuses="response_format", body=error("deepseek-reasoner does not support Json Output.")
    ),
    Habit(provider="DeepSeek", refuses="n", body=error("Invalid n value (currently only n = 1 is supported)")),
    # Ollama
    Habit(
        provider="Ollama",
        refuses="json_schema",
        status=500,
        body=error("failed to load model vocabulary required for format", type="api_error"),
    ),
    Habit(provider="Ollama", refuses="json_schema", status=500, body=error("invalid JSON schema in format")),
    # vLLM, SGLang
    Habit(
        provider="vLLM",
        refuses="json_schema",
        body=vllm("The provided JSON schema contains features not supported by xgrammar."),
    ),
    Habit(provider="vLLM", refuses="n", body=vllm("n must be 1 when using greedy sampling, got 3.")),
    Habit(provider="vLLM", refuses="json_schema", status=500, body=b"Internal Server Error"),
    Habit(
        provider="vLLM",
        refuses="response_format",
        status=501,
        body=vllm("guided decoding is not implemented for this backend"),
    ),
    Habit(provider="SGLang", refuses="n", body=fastapi("n"), status=422),
    Habit(
        provider="Dynamo", refuses="n", body={"message": "When n > 1, temperature must be greater than 0.", "code": 400}
    ),
    # llama.cpp
    Habit(
        provider="llama.cpp",
        refuses="json_schema",
        body=error("Failed to initialize samplers: failed to parse grammar", code=400),
    ),
    Habit(provider="llama.cpp", refuses="json_schema", status=500, body=error("failed to parse grammar", code=500)),
    Habit(provider="llama.cpp", refuses="n", body=error("Only one completion choice is allowed", code=400)),
    # TGI
    Habit(
        provider="TGI",
        refuses="response_format",
        status=422,
        body={"error": "Input validation error: grammar is not valid: unsupported", "error_type": "validation"},
    ),
    Habit(
        provider="TGI",
        refuses="json_object",
        status=422,
        body=b"Failed to deserialize the JSON body: response_format: missing field `value`",
    ),
    # LM Studio
    Habit(
        provider="LM Studio",
        refuses="json_object",
        body={"error": "'response_format.type' must be 'json_schema' or 'text'"},
    ),
    Habit(provider="LM Studio", refuses="json_schema", body={"error": "Error in grammar: anyOf is not supported"}),
    # LiteLLM, OpenRouter and other gateways
    Habit(
        provider="LiteLLM",
        refuses="response_format",
        body=litellm("ollama does not support parameters: ['response_format']."),
    ),
    Habit(provider="LiteLLM", refuses="n", body=litellm("bedrock does not support parameters: {'n': 3}.")),
    Habit(provider="LiteLLM", refuses="temperature", body=litellm("gpt-5 models don't support temperature=0.7.")),
    Habit(provider="OpenRouter", refuses="response_format", status=404, body=error(OPEN_ROUTER, code=404)),
    Habit(provider="OpenRouter", refuses="n", status=404, body=error(OPEN_ROUTER, code=404)),
    Habit(
        provider="OpenRouter", refuses="temperature", status=200, body=error("temperature is not supported", code=400)
    ),
    Habit(provider="a gateway", refuses="n", status=405, body=error("parameter n is not allowed")),
    Habit(provider="a gateway", refuses="temperature", body=error("invalid request")),
    Habit(provider="a gateway", refuses="n", body=b"<html><h1>400 Bad Request</h1></html>"),
]


def serve(endpoint, habit):
    def answer(request):
        if habit.applies_to(request):
            return habit.status, habit.body
        wanted = COMPLETE if endpoint.question(request) == "completeness" else GROUNDED
        return endpoint.says(*[json.dumps({"answer": wanted})] * request.get("n", 1))

    endpoint.answer = answer


@pytest.mark.parametrize("habit", HABITS, ids=lambda habit: f"{habit.provider}-{habit.refuses}")
async def test_what_an_endpoint_refuses_is_left_out_and_nothing_else(fake_openai, openai_judge, super_bowl, habit):
    serve(fake_openai, habit)
    judge = openai_judge(extra_body=habit.sent)

    scores = [await metric(judge).score(super_bowl) for metric in (ContextAdherence, Completeness)]

    assert [score.value for score in scores] == [1.0, 1.0]
    asked_before = len(fake_openai.requests)
    await ContextAdherence(judge).score(super_bowl)
    later = fake_openai.requests[asked_before:]
    if habit.status == 500 and isinstance(habit.body, bytes):
        return  # it may be out: that it refuses the schema is learned when that was so three times
    assert not [request for request in later if habit.applies_to(request)], "it is refused once"
    kept = {"response_format", "n", "temperature"} - {habit.refuses}
    if habit.refuses.startswith("json_"):
        assert later[0].get("response_format", {}).get("type") != habit.refuses
        kept -= {"response_format"}
    if habit.refuses == "n":
        kept -= {"n"}
        assert len(later) == 3
    assert kept <= set(later[0])
    assert (
        habit.refuses.startswith("json_")
        or "response_format" in habit.refuses
        or later[0]["response_format"]["type"] == "json_schema"
    )
    assert judge.refused or habit.refuses == "json_object"


async def test_a_limit_of_tokens_keeps_its_value_under_the_name_that_is_taken(fake_openai, openai_judge, super_bowl):
    serve(fake_openai, Habit(provider="OpenAI", refuses="max_tokens", body=error(TWO_NAMES, param="max_tokens")))

    await ContextAdherence(openai_judge(extra_body={"max_tokens": 900})).score(super_bowl)

    assert fake_openai.requests[-1]["max_completion_tokens"] == 900


async def test_what_says_who_may_see_the_texts_is_never_left_out(fake_openai, openai_judge, super_bowl):
    fake_openai.answer = lambda request: (
        400,
        error("Unrecognized request argument supplied: provider", param="provider"),
    )

    outcome = await ContextAdherence(openai_judge(extra_body={"provider": {"data_collection": "deny"}})).score(
        super_bowl
    )

    assert outcome.error_type == "BadRequestError"
    assert all("provider" in request for request in fake_openai.requests)


async def test_a_field_of_the_users_that_is_left_out_is_logged_by_its_name(
    fake_openai, openai_judge, super_bowl, caplog
):
    serve(fake_openai, Habit(provider="OpenAI", refuses="verbosity", body=error("bad", param="verbosity")))

    await ContextAdherence(openai_judge(extra_body={"verbosity": "low"})).score(super_bowl)

    assert "the judge's endpoint refuses verbosity" in caplog.text


async def test_a_guard_answers_without_log_probabilities(fake_openai, super_bowl):
    def answer(request):
        if "logprobs" in request:
            return 400, error("property 'logprobs' is unsupported", param="logprobs")
        if "top_logprobs" in request:
            return 400, error("top_logprobs needs logprobs", param="top_logprobs")
        return fake_openai.says("<score>no</score>")

    fake_openai.answer = answer
    guard = SmallJudge("granite-guardian", fake_openai.base_url)

    [verdict] = await guard.verify_claims(super_bowl, ["It was in Los Angeles."])

    assert (verdict.verdict, verdict.probability) == ("supported", None)
