"""Rows that are records with their searches say why their answers fail, in the result file and in the report."""

from __future__ import annotations

import json

from ragspan.evaluate import evaluate
from ragspan.evaluate.report import write_report
from ragspan.judges import OverlapJudge
from ragspan.metrics import Completeness, Faithfulness
from ragspan.records import RagRecord, Retrieval, as_contexts

FEE = "The annual fee of the silver card is 49 euros, payable in March."
SETTLED = "Beta settles card payments after midnight."


def record(response):
    found = as_contexts([SETTLED, FEE])
    search = Retrieval(name="search", query="", started_ns=0, ended_ns=1, contexts=found)
    return RagRecord(question="What is the fee?", contexts=found[:1], response=response, retrievals=(search,))


def test_the_cause_is_in_the_file_of_rows_and_in_the_reports_summary(tmp_path):
    answers = [FEE, SETTLED, FEE, "Gamma sends invoices by registered mail every Tuesday."]
    table = tmp_path / "answers.jsonl"
    table.write_text("\n".join(record(answer).to_json() for answer in answers))
    results, report = tmp_path / "results.jsonl", tmp_path / "report.html"

    judge = OverlapJudge()
    evaluation = evaluate(table, metrics=[Faithfulness(judge), Completeness(judge)], output=results)
    write_report(evaluation, report)

    rows = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()[1:]]
    causes = [[one["kind"] for one in row["outcomes"]["faithfulness"].get("causes", ())] for row in rows]
    assert causes == [["lost_before_prompt"], [], ["lost_before_prompt"], []]
    assert evaluation.summary["faithfulness"].causes == {"lost_before_prompt": 2}
    page = report.read_text(encoding="utf-8")
    assert "The commonest cause: lost before prompt" in page
    assert "Document 2 of search, which did not reach the prompt, supports a claim" in page


def test_a_column_of_retrieved_documents_gives_causes_as_well():
    row = {"question": "What is the fee?", "contexts": [SETTLED], "retrieved": [SETTLED, FEE], "answer": FEE}

    evaluation = evaluate([row], metrics=[Faithfulness(OverlapJudge())])

    (worst,) = evaluation.worst_by("faithfulness")
    assert worst.outcomes["faithfulness"].losses == (
        "Document 2 of search, which did not reach the prompt, supports a claim that the contexts do not."
    )
