"""What is read out of providers' replies, whatever form these have."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from pydantic import BaseModel

from ragspan.provider_replies import ReplyFacts, cost_of, facts_of, notes_of, reports_search, total_tokens_of

FACTS = ReplyFacts(
    response_model="m-1", finish_reason="stop", input_tokens=7, output_tokens=2, cached_tokens=None, response_id=None
)
USAGE = {"prompt_tokens": 7, "completion_tokens": 2}
CHOICE = {"finish_reason": "stop"}


@pytest.mark.parametrize(
    "parts",
    [
        [{"model": "m-1", "choices": [CHOICE], "usage": USAGE}],
        [{"model": "m-1", "stop_reason": "stop", "usage": {"input_tokens": 7, "output_tokens": 2}}],
        [{"model_name": "m-1", **CHOICE}, {"token_usage": USAGE}],
        [SimpleNamespace(model="m-1", choices=[SimpleNamespace(**CHOICE)], usage=SimpleNamespace(**USAGE))],
        [{"model": "m-1", "done_reason": "stop", "prompt_eval_count": 7, "eval_count": 2}, None],
    ],
    ids=["OpenAI", "Anthropic", "LangChain", "objects", "Ollama"],
)
def test_the_facts_of_a_reply(parts):
    assert facts_of(parts) == FACTS


class Reply(BaseModel, extra="allow"):
    """What a client's model makes of fields that it does not know."""

    model: str


OF_EVERY_NAME = {
    "input_tokens": "prompt_tokens input_tokens prompt_token_count prompt_eval_count inputTokens promptTokenCount",
    "output_tokens": "completion_tokens output_tokens candidates_token_count eval_count outputTokens candidatesTokenCount",
    "cached_tokens": "cache_read cached_tokens cache_read_input_tokens cached_content_token_count "
    "prompt_cache_hit_tokens num_cached_tokens cacheReadInputTokens cachedContentTokenCount",
}


@pytest.mark.parametrize(
    ("field", "name"), [(field, one) for field, names in OF_EVERY_NAME.items() for one in names.split()]
)
def test_tokens_are_read_under_every_name_and_in_every_place(field, name):
    for usage in ("usage", "usage_metadata", "usageMetadata", "token_usage"):
        assert getattr(facts_of([None, {usage: {name: "12"}}]), field) == 12
    for details in ("input_token_details", "prompt_tokens_details", "input_tokens_details"):
        assert getattr(facts_of([{"usage": {details: {name: 12.0}}}]), field) == 12
    assert getattr(facts_of(notes_of([Reply(model="m", usage={name: 12})])), field) == 12


@pytest.mark.parametrize(
    ("count", "read"),
    [(12, 12), ("12", 12), (12.4, 12), ("1e2", 100), (0, None), (-1, None), (0.4, None), (True, None), ("many", None),
     (10**400, None), ("inf", None), ("nan", None), ([3], None)],
)  # fmt: skip
def test_a_count_is_a_number_above_0_however_it_is_written(count, read):
    assert facts_of([{"usage": {"prompt_tokens": count}}]).input_tokens == read
    for name in ("total_tokens", "total_token_count", "totalTokens", "totalTokenCount"):
        assert total_tokens_of([{"usage": {name: count}}]) == read


def test_the_first_reply_that_says_something_counts_and_nothing_is_no_facts():
    assert facts_of([]) == facts_of([None, {}, "text"]) == facts_of([{"usage": None, "choices": []}])
    assert facts_of([{"model": ""}, {"model": "m", "id": "r"}, {"model": "n"}]) == ("m", *[None] * 4, "r")
    assert facts_of([{"candidates": [{"finish_reason": "STOP"}, {"finish_reason": "no"}]}]).finish_reason == "STOP"
    assert facts_of([{"response_id": "r-1", "finish_reason": "stop"}]).response_id == "r-1"


@pytest.mark.parametrize(
    ("usage", "cost"),
    [({"cost": 0.25}, 0.25), ({"cost": {"total_cost": 0.5}}, 0.5), ({"estimated_cost": "0.1"}, 0.1), ({"response_cost": 2}, 2.0), ({"cost": 0}, None), ({}, None)],
)  # fmt: skip
def test_the_cost_is_what_the_usage_says(usage, cost):
    assert cost_of([{"usage": usage}]) == cost
    assert cost_of([{"cost": 3.0}]) is None


def test_notes_are_plain_data_of_what_facts_are_read_from():
    reply = {"model": "m", "prompt": "long", "usage": USAGE | {"cost": 3}, "choices": [CHOICE | {"message": {}}]}

    assert notes_of([None, {}, reply]) == [{"model": "m"}, USAGE, CHOICE]
    assert notes_of(iter([Reply(model="m", id=object())])) == [{"model": "m"}]


SEARCHES = [
    {"grounding_metadata": {"chunks": []}},
    {"search_results": [{"title": "t"}]},
    {"citations": ["https://example.com"]},
    {"annotations": [{"type": "url_citation"}]},
    {"annotations": [{"type": "note"}, {"url": "https://example.com"}]},
    {"type": "web_search_call"},
    {"type": "mcp_call"},
    {"type": "server_tool_use", "name": "web_search"},
    {"type": "server_tool_use", "name": "web_fetch"},
    {"type": "mcp_tool_use", "name": "lookup"},
    {"content": [{"type": "text"}, {"type": "web_search_tool_result"}]},
    {"choices": [{"message": {"annotations": [{"type": "file_citation"}]}}]},
    [{"output": [{"type": "file_search_call"}]}],
    *([{}] * 999 + [{"type": kind}] for kind in ("web_fetch_tool_result", "web_search_tool_result")),
    *({"annotations": [{"type": kind}]} for kind in ("web_search_result_location", "url_citation")),
    {"content": {"content": {"content": {"type": "mcp_call"}}}},
    SimpleNamespace(executed_tools=SimpleNamespace()),
    *({name: [{"a": 1}]} for name in ("tool_outputs", "executed_tools", "built_in_tool_calls")),
]
NO_SEARCHES = [
    *(None, {}, "web_search_call", 3, []),
    *({"search_results": []}, {"executed_tools": None}, {"grounding_metadata": False}),
    *({"type": "text", "name": "web_search"}, {"type": "server_tool_use", "name": "run_code"}),
    {"annotations": [{"type": "document"}], "citations": [{"document_index": 0}]},
    {"type": "tool_use", "name": "web_search"},
    {"citations": [{"type": "search_result_location"}]},  # of what the program handed over
    {"content": {"content": {"content": {"content": {"type": "mcp_call"}}}}},
    [{}] * 1000 + [{"type": "mcp_call"}],
]


@pytest.mark.parametrize(
    ("reply", "searched"), [*((one, True) for one in SEARCHES), *((one, False) for one in NO_SEARCHES)]
)
def test_a_reply_shows_that_its_provider_searched(reply, searched):
    assert reports_search([None, {}, reply]) is searched
