"""By what an answer is judged: documents, background, both, or neither."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from ragspan.judges import OverlapJudge, Vote
from ragspan.metrics import ContextAdherence, Faithfulness
from ragspan.outcomes import NotApplicable
from ragspan.records import Background, RagRecord

CARD = "The silver card has a chip and a photograph of its owner."
FEE = "The annual fee of the silver card is 49 euros, payable in March."
PARTIAL = f"{CARD} {FEE}"
TOOL = Background(text=f"fees_of(card='silver') returned one row: {FEE}", kind="tool")
EIGHT_WORDS = Background(text="The fee is 49 euros, payable each month.", kind="tool")
BY_EVIDENCE = [ContextAdherence, Faithfulness]


def record(**changes):
    return RagRecord(
        **({"question": "What does the silver card cost?", "contexts": [CARD], "response": PARTIAL} | changes)
    )


@pytest.mark.parametrize("metric", BY_EVIDENCE)
@pytest.mark.parametrize("kind", ["metadata", "tool", "history", "other"])
async def test_background_supports_what_the_documents_do_not_hold(metric, kind):
    alone = await metric(OverlapJudge()).score(record())
    both = await metric(OverlapJudge()).score(record(background=[replace(TOOL, kind=kind)]))

    assert (alone.label, both.label) == ("fail", "pass")


@pytest.mark.parametrize("metric", BY_EVIDENCE)
@pytest.mark.parametrize(
    ("response", "judged"),
    [(FEE, True), ("You are welcome.", False), ("Every Tuesday invoices are sent by Gamma.", False)],
)
async def test_without_documents_background_counts_if_it_supports_a_claim(metric, response, judged):
    outcome = await metric(OverlapJudge()).score(record(contexts=[], response=response, background=[TOOL]))

    assert (outcome != NotApplicable(reason="no_contexts")) is judged
    assert not judged or outcome.label == "pass"


@pytest.mark.parametrize("metric", BY_EVIDENCE)
@pytest.mark.parametrize(
    ("changes", "judged"),
    [
        ({}, True),
        ({"contexts_unknown": "unmarked_text"}, True),
        ({"prompts_seen": False}, False),
        ({"background": [replace(TOOL, kind="history")]}, True),
        ({"background": [replace(TOOL, kind="other")]}, False),
        ({"background": [EIGHT_WORDS], "response": "The fee is 49 euros."}, True),
        ({"background": [replace(EIGHT_WORDS, text="The fee is 49 euros, payable monthly.")]}, False),
        ({"background": [replace(TOOL, kind="other")], "background_is_prompt": True}, True),
        *(({"contexts_unknown": why}, False) for why in ("picture", "provider_search", "unseen_prompt", "too_much")),
        ({"response": "You are welcome."}, False),
    ],
)
async def test_with_unknown_documents_tools_and_history_count_if_all_prompts_were_seen(metric, changes, judged):
    unknown = record(contexts=None, response=FEE, background=[TOOL], prompts_seen=True)

    outcome = await metric(OverlapJudge()).score(replace(unknown, **changes))

    assert isinstance(outcome, NotApplicable) is not judged
    assert judged or outcome.reason == "contexts_unknown"
    assert not judged or outcome.label == "pass"


@pytest.mark.parametrize("metric", BY_EVIDENCE)
@pytest.mark.parametrize("from_model", [None, True, False])
async def test_what_no_model_said_is_not_judged_by_evidence(metric, from_model):
    outcome = await metric(OverlapJudge()).score(record(from_model=from_model))

    assert (outcome == NotApplicable(reason="not_from_a_model")) is (from_model is False)


@pytest.mark.parametrize("metric", BY_EVIDENCE)
async def test_if_the_record_was_cut_nobody_can_tell_what_is_unsupported(metric):
    cut = record(background=["Nothing about fees."], background_truncated=True)

    assert (await metric(OverlapJudge()).score(cut)).reason == "cannot_tell"
    assert (await metric(OverlapJudge()).score(replace(cut, response=CARD))).label == "pass"


@pytest.mark.parametrize(("contexts", "told"), [([], "no_contexts"), (None, "fail")])
async def test_of_a_judge_that_only_votes_a_fail_counts_where_background_alone_was_shown(contexts, told):
    async def votes(_, count):
        return [Vote(grounded=False)] * count

    judge = SimpleNamespace(name="own", vote_adherence=votes)
    shown = record(contexts=contexts, response=FEE, background=[TOOL], prompts_seen=True)
    outcome = await ContextAdherence(judge).score(shown)

    assert getattr(outcome, "label", getattr(outcome, "reason", None)) == told
