"""What a judge tells the allowance and the usage meter, request by request."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from ragspan.exceptions import BudgetExhausted, JudgeError
from ragspan.judges import LLMJudge, Price
from ragspan.judges.judge_protocols import Completion, ItemQuestion
from ragspan.judges.session import JudgingSession, judging
from ragspan.usage import Usage

PRICE = Price(1.0, 10.0, cached_input=0.1)


@dataclass
class Purse:
    """Allows so many requests, and keeps what it is told."""

    requests: int = 99
    expected: list[Usage] = field(default_factory=list)
    settled: list[Usage] = field(default_factory=list)

    def reserve(self, expected):
        if len(self.expected) >= self.requests:
            raise BudgetExhausted("requests_per_minute", False)
        self.expected.append(expected)
        return self.settled.append


class MeteredClient:
    """Answers each request with its texts, each of which took this much."""

    def __init__(self, usage, *texts):
        self._usage = usage
        self._texts = list(texts)
        self.requests = []

    async def complete(self, messages, *, schema, n, temperature):
        self.requests.append(messages)
        return [Completion(text=text, usage=self._usage) for text in self._texts]


@pytest.fixture
def no_claims(reply):
    return reply(judged_claims={"claims": [], "more": False})


async def test_a_request_is_allowed_before_it_is_sent_and_settled_after(no_claims, super_bowl):
    used = Usage(requests=1, input_tokens=1000, cached_tokens=400, output_tokens=50)
    purse, client = Purse(), MeteredClient(used, no_claims)
    with judging(JudgingSession(allowance=purse.reserve)):
        await LLMJudge(client, name="j", price=PRICE).extract_claims(super_bowl)

    [expected], [settled], [messages] = purse.expected, purse.settled, client.requests
    tokens = sum(len(message["content"]) for message in messages) // 4 + 1
    assert expected == Usage(requests=1, input_tokens=tokens, output_tokens=400, usd=(tokens + 4000) / 1e6)
    assert settled == Usage(requests=1, input_tokens=1000, cached_tokens=400, output_tokens=50, usd=0.00114)


@pytest.mark.parametrize("usd", [None, 0.5])
async def test_where_no_tokens_are_told_those_that_were_expected_count(no_claims, super_bowl, usd):
    purse, client = Purse(), MeteredClient(Usage(requests=1, usd=usd), no_claims)
    with judging(JudgingSession(allowance=purse.reserve)):
        await LLMJudge(client, name="j", price=PRICE).extract_claims(super_bowl)

    assert purse.settled == [replace(one, usd=usd or one.usd) for one in purse.expected]


@pytest.mark.parametrize(
    ("told", "settled"),
    [
        (None, Usage(requests=1, usd=0.0)),
        (Usage(requests=1, input_tokens=9), Usage(requests=1, input_tokens=9, usd=9e-6)),
    ],
)
async def test_a_request_that_fails_counts_as_one_and_takes_what_is_told(scripted, super_bowl, told, settled):
    purse, meter = Purse(), []
    judge, _ = scripted(JudgeError("RateLimitError", "no", usage=told), price=PRICE)
    with judging(JudgingSession(allowance=purse.reserve, meter=meter)), pytest.raises(JudgeError):
        await judge.extract_claims(super_bowl)

    assert (purse.settled, meter) == ([settled], [settled] if told else [])


@pytest.mark.parametrize(
    ("question", "wanted", "tokens"),
    [
        ("vote_adherence", 3, 240),
        ("rate_completeness", 2, 160),
        ("rate_answer_relevance", 2, 160),
        ("judge_usefulness", None, 105),
        ("rate_context_relevance", None, 105),
        ("measure_utilization", None, 120),
        ("verify_claims", ["a", "b"], 100),
        ("judge_items", ItemQuestion(key="k", about="", verdicts=("y",), items=("a",)), 50),
    ],
)
async def test_each_part_of_a_reply_has_its_length(scripted, super_bowl, question, wanted, tokens):
    purse, (judge, _) = Purse(), scripted(JudgeError("RateLimitError", "no"))
    with judging(JudgingSession(allowance=purse.reserve)), pytest.raises(JudgeError):
        await getattr(judge, question)(super_bowl, *([] if wanted is None else [wanted]))

    assert [expected.output_tokens for expected in purse.expected] == [tokens]
