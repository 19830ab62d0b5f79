"""What an endpoint refuses is left out; a refusal that names nothing fails with the endpoint's words. `test_refusals_of_providers` has the names."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ragspan.metrics import ContextAdherence
from ragspan.outcomes import MetricFailure

GROUNDED = json.dumps({"answer": {"grounding": {"reasoning": "stated", "verdict": "grounded"}}})


def refuses(fake_openai, status, message, *, unless):
    """An endpoint that answers so, as long as a request has none of these forms."""

    def answer(request):
        if unless(request):
            return fake_openai.says(*[GROUNDED] * request.get("n", 1))
        return fake_openai.fails(status, message)

    fake_openai.answer = answer


async def test_a_schema_that_is_refused_is_replaced_by_json_mode_for_good(fake_openai, openai_judge, super_bowl):
    is_plain = lambda request: request["response_format"]["type"] == "json_object"  # noqa: E731
    refuses(fake_openai, 500, "failed to load grammar", unless=is_plain)
    judge = openai_judge()

    assert (await ContextAdherence(judge).score(super_bowl)).value == 1.0
    assert (await ContextAdherence(judge).score(replace(super_bowl))).value == 1.0

    kinds = [request["response_format"]["type"] for request in fake_openai.requests]
    assert kinds == ["json_schema", "json_object", "json_object"]


async def test_a_generation_that_broke_the_schema_costs_one_request_its_schema(fake_openai, openai_judge, super_bowl):
    replies = [fake_openai.fails(400, "Failed to generate JSON", code="json_validate_failed"), None, None]

    def answer(request):
        return replies.pop(0) or fake_openai.says(*[GROUNDED] * request.get("n", 1))

    fake_openai.answer = answer
    judge = openai_judge()
    await ContextAdherence(judge).score(super_bowl)
    await ContextAdherence(judge).score(replace(super_bowl))

    kinds = [request["response_format"]["type"] for request in fake_openai.requests]
    assert kinds == ["json_schema", "json_object", "json_schema"]


@pytest.mark.parametrize(
    ("message", "sent"),
    [("Bad request", {}), ("provider: data_collection is not supported", {"provider": {"data_collection": "deny"}})],
)
async def test_a_refusal_is_final_that_names_nothing_or_what_a_user_sends(
    fake_openai, openai_judge, super_bowl, message, sent
):
    refuses(fake_openai, 400, message, unless=lambda _: False)

    outcome = await ContextAdherence(openai_judge(extra_body=sent)).score(super_bowl)

    assert (type(outcome), message in outcome.message, len(fake_openai.requests)) == (MetricFailure, True, 1)
