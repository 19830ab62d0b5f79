"""The same verdicts, scored by Ragas 0.4 and by ragspan: where both define a quantity, they agree on it.

Ragas is not among the packages that the tests need. Where it is installed, beside ragspan and pytest:

    python -m pytest tests/judges/test_against_ragas.py

What we mean to do otherwise is named by the tests that begin with "ours" or "where".
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import math
import sys
import types
import warnings

import pytest

from ragspan.judges.base import ClaimVerdict
from ragspan.metrics import ContextUtilization, Faithfulness
from ragspan.outcomes import MetricFailure, NotApplicable
from ragspan.records import RagRecord
from ragspan.testing import FakeJudge

EPSILON = 1e-9
"""More than the epsilon that Ragas adds to a denominator can move a value."""
GONE = "langchain_community.chat_models.vertexai"
"""What Ragas imports and langchain-community 0.4 no longer has; nothing here uses it."""

pytestmark = pytest.mark.skipif(importlib.util.find_spec("ragas") is None, reason="ragas is not installed")


@pytest.fixture(scope="module")
def ragas():
    """Ragas' metrics, with its telemetry off."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setenv("RAGAS_DO_NOT_TRACK", "true")
        if importlib.util.find_spec(GONE) is None:
            stand_in = types.ModuleType(GONE)
            stand_in.ChatVertexAI = type("ChatVertexAI", (), {})
            patch.setitem(sys.modules, GONE, stand_in)
        yield importlib.import_module("ragas.metrics.collections")


@pytest.fixture
def model_of(ragas):
    """Makes Ragas' model of scripted claims and verdicts: it fills in whatever structure it is asked for."""
    base = importlib.import_module("ragas.llms.base").InstructorBaseRagasLLM

    class ScriptedModel(base):
        def __init__(self, claims, verdicts):
            self._claims = claims
            self._verdicts = iter(verdicts)

        def generate(self, prompt, response_model):
            raise AssertionError("it is asked in an event loop")

        async def agenerate(self, prompt, response_model):
            if "verdict" in response_model.model_fields:
                return response_model(reason="r", verdict=next(self._verdicts))
            if response_model.__name__ == "StatementGeneratorOutput":
                return response_model(statements=self._claims)
            found = [
                {"statement": claim, "reason": "r", "verdict": verdict}
                for claim, verdict in zip(self._claims, self._verdicts, strict=False)
            ]
            return response_model(statements=found)

    return ScriptedModel


async def ragas_score(metric, contexts):
    result = await metric.ascore(user_input="Who won?", response="Green Bay.", retrieved_contexts=contexts)
    return result.value


def record(contexts=("a passage",)):
    return RagRecord(question="Who won?", contexts=contexts, response="Green Bay.")


@pytest.fixture
def faithfulness(ragas, model_of):
    """The value of Ragas and the outcome of ragspan for the same verdicts on claims."""

    async def of(verdicts, claims=None):
        claims = [f"claim {number}" for number in range(len(verdicts))] if claims is None else claims
        theirs = await ragas_score(ragas.Faithfulness(llm=model_of(claims, verdicts)), ["a passage"])
        judge = JudgeOfAFew(verdicts, claims=claims)
        return theirs, await Faithfulness(judge).score(record())

    return of


class JudgeOfAFew(FakeJudge):
    """Gives a verdict on each claim for which it has one, and none on the others."""

    def __init__(self, verdicts, *, claims):
        super().__init__(claims=claims)
        object.__setattr__(self, "verdicts", verdicts)

    async def verify_claims(self, record, claims):
        pairs = zip(claims, self.verdicts, strict=False)
        return [ClaimVerdict(index=index, supported=bool(verdict)) for index, (_, verdict) in enumerate(pairs)]


@pytest.fixture
def utilization(ragas, model_of):
    async def of(verdicts):
        contexts = [f"passage {number}" for number in range(len(verdicts))]
        theirs = await ragas_score(ragas.ContextUtilization(llm=model_of([], verdicts)), contexts)
        ours = await ContextUtilization(FakeJudge(useful=verdicts)).score(record(contexts))
        return theirs, ours.value

    return of


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
async def test_faithfulness_is_the_same_for_all_verdicts_on_up_to_five_claims(faithfulness, count):
    for verdicts in itertools.product([0, 1], repeat=count):
        theirs, ours = await faithfulness(verdicts)

        assert ours.value == theirs


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
async def test_utilization_is_the_same_up_to_an_epsilon_for_all_verdicts_on_up_to_five_passages(utilization, count):
    for verdicts in itertools.product([0, 1], repeat=count):
        theirs, ours = await utilization(verdicts)

        assert ours == pytest.approx(theirs, abs=EPSILON)


async def test_ours_reaches_1_where_an_epsilon_keeps_theirs_below(utilization):
    theirs, ours = await utilization([1, 1, 0])

    assert theirs < ours == 1.0


async def test_where_nothing_is_claimed_theirs_is_nan_and_ours_a_reason(faithfulness):
    theirs, ours = await faithfulness([], claims=[])

    assert math.isnan(theirs)
    assert ours == NotApplicable(reason="no_claims")


async def test_where_a_verdict_is_missing_theirs_divides_by_fewer_and_ours_fails(faithfulness):
    theirs, ours = await faithfulness([1, 1], claims=["a", "b", "c"])

    assert theirs == 1.0
    assert isinstance(ours, MetricFailure)
    assert ours.error_type == "missing_verdicts"


async def test_where_no_verdict_comes_at_all_theirs_is_nan_and_ours_fails(faithfulness):
    theirs, ours = await faithfulness([], claims=["a"])

    assert math.isnan(theirs)
    assert isinstance(ours, MetricFailure)


async def test_where_there_are_no_contexts_theirs_raises_and_ours_is_a_reason(ragas, model_of):
    with pytest.raises(ValueError, match="retrieved_contexts"):
        await ragas_score(ragas.ContextUtilization(llm=model_of([], [])), [])

    assert await ContextUtilization(FakeJudge()).score(record([])) == NotApplicable(reason="no_contexts")
