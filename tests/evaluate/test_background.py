"""Background in tables, and unsure claims in reports."""

from __future__ import annotations

import csv
import json

from ragspan.evaluate import evaluate
from ragspan.evaluate.report.answer_cards import mark_claims
from ragspan.judges.judge_protocols import ClaimVerdict

FEE = "The annual fee of the silver card is 49 euros."


def test_a_column_of_background_counts_for_adherence_and_faithfulness(tmp_path):
    path = tmp_path / "rows.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["question", "contexts", "answer", "background"])
        writer.writeheader()
        row = {"question": "Fee?", "contexts": json.dumps(["Cards are grey."]), "answer": FEE}
        writer.writerow(row | {"background": json.dumps([{"text": FEE, "kind": "tool"}])})
        writer.writerow(row)

    evaluation = evaluate(path, ["faithfulness", "context_adherence"], judge="overlap")

    for metric in ("faithfulness", "context_adherence"):
        failing, passing = evaluation.worst_by(metric)
        assert (failing.outcomes[metric].label, passing.outcomes[metric].label) == ("fail", "pass")
        assert [one.kind for one in passing.record.background] == ["tool"]


def test_a_sentence_of_which_the_judge_is_unsure_is_marked_as_neither():
    pieces, _ = mark_claims([(1, ClaimVerdict(index=0, verdict="unsure", claim=FEE))], FEE, ())

    assert [(piece.text, piece.numbers, piece.is_supported) for piece in pieces] == [(FEE, (1,), None)]
