"""Background in tables."""

from __future__ import annotations

import csv
import json

from ragspan.evaluate import evaluate

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
