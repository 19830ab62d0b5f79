"""Each provider refuses one parameter after the other, in its own words: what it refuses is left out, and what it takes is kept."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ragspan.judges.presets import PRESETS
from ragspan.metrics import ContextAdherence

GROUNDED = json.dumps({"answer": {"grounding": {"reasoning": "stated", "verdict": "grounded"}}})
REFUSABLE = ("n", "temperature", "response_format", "seed", "logprobs", "max_tokens")
SENT = {"seed": 7, "logprobs": True, "max_tokens": 900}
CAMEL = {
    "n": "candidateCount",
    "temperature": "temperature",
    "response_format": "responseSchema",
    "seed": "seed",
    "logprobs": "responseLogprobs",
    "max_tokens": "maxOutputTokens",
}


def error(message, **more):
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None, **more}}


def forbidden(name):
    return {"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted", "input": 3}


WORDS = {
    "openai": lambda name: (
        400,
        error(f"Unsupported parameter: '{name}' is not supported with this model.", param=name),
    ),
    "azure": lambda name: (400, error(f"Unrecognized request argument supplied: {name}")),
    "anthropic": lambda name: (400, {"type": "error", **error(f"{name}: Extra inputs are not permitted")}),
    "gemini": lambda name: (
        400,
        [
            {
                "error": {
                    "code": 400,
                    "status": "INVALID_ARGUMENT",
                    "message": f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.',
                    "details": [{"fieldViolations": [{"description": f'Unknown name "{name}"'}]}],
                }
            }
        ],
    ),
    "bedrock": lambda name: (
        400,
        {"message": f"The model returned the following errors: {name}: Extra inputs are not permitted"},
    ),
    "mistral": lambda name: (422, {"object": "error", "message": {"detail": [forbidden(name)]}, "code": None}),
    "groq": lambda name: (400, error(f"property '{name}' is unsupported")),
    "deepseek": lambda name: (
        422,
        error(f"Failed to deserialize the JSON body into the target type: {name}: invalid value at line 1 column 9"),
    ),
    "ollama": lambda name: (
        400,
        error(f"json: cannot unmarshal object into Go struct field ChatCompletionRequest.{name} of type string"),
    ),
    "vllm": lambda name: (
        400,
        {"object": "error", "message": str([forbidden(name)]), "type": "BadRequestError", "param": None, "code": 400},
    ),
    "llama.cpp": lambda name: (400, error(f"Unsupported param: {name}", code=400)),
    "lmstudio": lambda name: (400, {"error": f"Unrecognized key(s) in object: '{name}'"}),
    "litellm": lambda name: (
        400,
        error(
            f"litellm.UnsupportedParamsError: ours does not support parameters: ['{name}'], for model=m.", code="400"
        ),
    ),
    "openrouter": lambda name: (
        400,
        error("Provider returned error", code=400, metadata={"raw": json.dumps(error(f"{name} is not supported"))}),
    ),
    "openrouter with status 200": lambda name: (200, error(f"{name} is not supported", code=400)),
    "xai": lambda name: (
        400,
        {"code": "invalid argument", "error": f"Argument not supported on this model: {CAMEL.get(name, name)}"},
    ),
    "together": lambda name: (
        400,
        {"id": "1", **error(f"Input validation error: '{name}' is not a supported parameter")},
    ),
    "fireworks": lambda name: (
        400,
        error(f"Extra inputs are not permitted, field: '{name}', value: 3", object="error"),
    ),
}


def test_every_provider_with_a_name_is_here():
    assert set(PRESETS) <= set(WORDS)


@pytest.mark.parametrize("name", WORDS)
async def test_what_a_provider_refuses_is_left_out_one_after_the_other(name, fake_openai, openai_judge, super_bowl):
    def answer(request):
        refused = next((one for one in REFUSABLE if one in request), None)
        if refused is not None:
            return WORDS[name](refused)
        return fake_openai.says(*[GROUNDED] * request.get("n", 1))

    fake_openai.answer = answer
    judge = openai_judge(extra_body=SENT)

    assert (await ContextAdherence(judge).score(super_bowl)).value == 1.0
    asked = len(fake_openai.requests)
    assert (await ContextAdherence(judge).score(replace(super_bowl))).value == 1.0
    assert len(fake_openai.requests) == asked + 3, "nothing is refused twice"
    assert set(fake_openai.requests[-1]) == {"model", "messages"}
