"""What of a prompt is evidence where nothing is known of documents."""

from __future__ import annotations

import pytest

from ragspan.engine import ScoringEngine
from ragspan.judges import OverlapJudge
from ragspan.judges.background import with_prompt_evidence
from ragspan.messages import Message
from ragspan.metrics import ContextAdherence, ContextRelevance, Faithfulness
from ragspan.outcomes import Score
from ragspan.records import Generation, RagRecord
from ragspan.testing import RecordingEmitter

QUESTION = "What does the silver card cost?"
FEE = "The annual fee of the silver card is 49 euros, payable in March."
INVENTED = "The annual fee of the silver card is 75 euros."


def call(*messages, reply=None):
    prompt = tuple(Message(role=role, text=text) for role, text in messages)
    return Generation(
        model=None,
        provider=None,
        started_ns=1,
        ended_ns=2,
        prompt=prompt,
        reply=None if reply is None else Message(role="assistant", text=reply),
    )


def answered(*calls, **changes):
    given = {"question": QUESTION, "contexts": None, "response": FEE, "generations": calls}
    return RagRecord(**(given | changes))


def evidence(*calls, **changes):
    return [(one.kind, one.text) for one in with_prompt_evidence(answered(*calls, **changes)).background]


def test_a_message_of_the_user_counts_without_the_question():
    assert evidence(call(("user", f"One two three four five six seven eight {QUESTION}")))
    assert not evidence(call(("user", f"One two three four five six seven {QUESTION}")))
    assert evidence(call(("user", f"Context:\n{FEE}\n\n{QUESTION}"), reply=FEE)) == [("other", f"Context:\n{FEE}")]
    assert evidence(call(("user", QUESTION), reply=FEE), call(("user", f"Mend: {FEE}"))) == []


@pytest.mark.parametrize(
    "messages",
    [
        [("system", f"Never say that: {INVENTED}"), ("user", QUESTION)],
        [("assistant", INVENTED), ("user", QUESTION)],
        [("user", f"Human: {INVENTED} Is it so, please tell me now?\nAI: {INVENTED} It is so.\n\n{QUESTION}")],
    ],
)
def test_words_of_the_system_of_models_and_of_users_before_do_not_count(messages):
    assert evidence(call(*messages)) == []


@pytest.mark.parametrize(
    "known",
    [
        answered(call(("user", FEE)), contexts=["A document."]),
        answered(),
        answered(call(("user", FEE)), call()),  # one of the prompts was not seen
    ],
)
def test_with_documents_or_unseen_prompts_the_record_stays(known):
    assert with_prompt_evidence(known) is known


@pytest.mark.parametrize(("response", "label"), [(FEE, "pass"), (INVENTED, "fail")])
def test_an_engine_that_is_asked_to_scores_by_prompts(response, label):
    emitter = RecordingEmitter()
    metrics = [kind(OverlapJudge()) for kind in (ContextAdherence, Faithfulness, ContextRelevance)]
    one = answered(call(("system", INVENTED), ("user", f"{FEE}\n\n{QUESTION}")), response=response)

    with ScoringEngine(metrics=metrics, emitters=[emitter], judging="thread", unknown_contexts="prompt") as engine:
        engine.submit(one)
        assert engine.flush(60)

    (scored,) = emitter.scored
    labels = {name: one.label if isinstance(one, Score) else one.reason for name, one in scored.outcomes.items()}
    assert labels == {"context_adherence": label, "faithfulness": label, "context_relevance": "contexts_unknown"}
