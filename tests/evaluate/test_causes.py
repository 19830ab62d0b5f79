"""Rows say why their answers fail."""

from __future__ import annotations

from ragspan.evaluate import evaluate
from ragspan.judges import OverlapJudge
from ragspan.metrics import Faithfulness

FEE = "The annual fee of the silver card is 49 euros, payable in March."
SETTLED = "Beta settles card payments after midnight."


def test_a_column_of_retrieved_documents_gives_causes_as_well():
    row = {"question": "What is the fee?", "contexts": [SETTLED], "retrieved": [SETTLED, FEE], "answer": FEE}

    evaluation = evaluate([row], metrics=[Faithfulness(OverlapJudge())])

    assert evaluation.summary["faithfulness"].causes == {"lost_before_prompt": 1}
    (worst,) = evaluation.worst_by("faithfulness")
    assert worst.outcomes["faithfulness"].losses == (
        "Document 2 of search, which did not reach the prompt, supports a claim that the contexts do not."
    )
