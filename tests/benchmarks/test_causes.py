"""The benchmark of causes tells a dropped document from one that was never retrieved, of made-up judgements."""

from __future__ import annotations

import gzip
import json

import pytest

pytestmark = pytest.mark.slow

TOWNS = ("Lisbon", "Porto", "Braga", "Faro", "Coimbra", "Evora", "Sintra", "Aveiro")


def row(town):
    fact = f"The oldest bakery of {town} sells round loaves of dark bread every Monday."
    return {
        "question": f"What does {town} sell?",
        "source_id": town,
        "contexts": [fact],
        "response": fact,
        "supported": True,
    }


def test_a_dropped_document_is_told_from_one_that_was_never_retrieved(figures_of, tmp_path):
    with gzip.open(tmp_path / "made_up.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row(town)) + "\n" for town in TOWNS)

    told = figures_of("causes.py", tmp_path)["made_up"]
    dropped = told["dropped, unrelated beside it"]
    assert dropped["answers"] == {"lost_before_prompt": len(TOWNS)}
    assert dropped["right_document"] == len(TOWNS)
    assert told["never retrieved, unrelated dropped"]["answers"] == {"unsupported": len(TOWNS)}
