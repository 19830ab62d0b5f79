"""A table in, scores out."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from result_lines import result_lines

from ragspan.evaluate import ResultFile, evaluate
from ragspan.exceptions import TableError

METRICS = ["faithfulness", "context_utilization"]


def test_each_record_and_metric_has_a_line_in_the_order_of_the_table(rows, judge):
    evaluation = evaluate(rows, METRICS, judge=judge)
    lines = [(line.row, line.record_id, line.metric, line.score, line.reason) for line in result_lines(evaluation)]

    assert lines == [
        (1, "a", "faithfulness", 1.0, None),
        (1, "a", "context_utilization", 1.0, None),
        (2, "b", "faithfulness", None, "no_contexts"),
        (2, "b", "context_utilization", None, "no_contexts"),
        (3, "c", "faithfulness", None, "no_response"),
        (3, "c", "context_utilization", None, "no_response"),
        (4, "d", "faithfulness", 1.0, None),
        (4, "d", "context_utilization", 1.0, None),
    ]
    assert (evaluation.rows, evaluation.metrics) == (4, tuple(METRICS))
    assert 0 <= evaluation.seconds < 600
    assert evaluation.summary["faithfulness"].not_scored == {"no_contexts": 1, "no_response": 1}


def test_the_output_has_the_rows_and_a_finished_run_may_be_resumed(rows, judge, tmp_path):
    output = tmp_path / "results.jsonl"
    rows[0]["answer"] = "Zürich \ud800"  # half of a surrogate pair, which no encoding takes
    evaluation = evaluate(rows, METRICS, judge=judge, output=output, resume=True)
    again = evaluate(rows, METRICS, judge=judge, output=output, resume=True)

    assert list(result_lines(ResultFile(output))) == list(result_lines(evaluation))
    assert '"Zürich ?"' in output.read_text("utf-8")
    assert again.summary == evaluation.summary
    assert (evaluation.resumed, again.resumed) == (0, 4)
    assert "4 rows evaluated by" in str(again)
    assert ", 4 of them in an earlier run, " in str(again)
    assert [path.name for path in tmp_path.iterdir()] == [output.name]


def test_a_file_that_ragspan_did_not_write_is_not_replaced(rows, judge, tmp_path):
    output = tmp_path / "notes.jsonl"
    output.write_text('{"mine": 1}\n')

    with pytest.raises(TableError, match="ragspan wrote, or was damaged: give another name, or delete it"):
        evaluate(rows, METRICS, judge=judge, output=output)
    assert output.read_text() == '{"mine": 1}\n'


class InterruptedAfter:
    """Rows, and then Ctrl-C."""

    def __init__(self, rows):
        self._rows = rows

    def __iter__(self):
        yield from self._rows
        raise KeyboardInterrupt


def test_an_interrupted_run_does_not_continue_with_other_settings_or_rows(judge, tmp_path):
    table = [{"question": f"q{number}", "contexts": "c", "answer": "r" * number} for number in range(200)]
    others = [{**row, "answer": "other"} for row in table]
    output = tmp_path / "r.jsonl"
    with pytest.raises(KeyboardInterrupt):
        evaluate(InterruptedAfter(table[:150]), METRICS, judge=judge, output=output)

    for rows, options, message in [
        (table, {"metrics": ["faithfulness"]}, "metrics was"),
        (table, {"answer_column": "question"}, "columns was .* answer: answer, is .* answer: question"),
        (others, {}, "row 1 is not what it was"),
        (table[:2], {}, "row 3 is not what it was"),
    ]:
        with pytest.raises(TableError, match=message):
            evaluate(rows, **{"metrics": METRICS, **options}, judge=judge, output=output, resume=True)


async def test_it_works_inside_a_running_loop_and_says_nothing_of_signals(rows, judge, caplog):
    assert evaluate(rows, METRICS, judge=judge).summary["faithfulness"].scored == 2
    assert caplog.text == ""


# Results --------------------------------------------------------------------------------------------------------------


def test_frames_have_a_line_for_each_row(judge):
    rows = pd.DataFrame(
        {"question": ["a", "b", "c"], "contexts": [math.nan, [], ["r"]], "answer": ["r"] * 3, "model": ["x", "y", "x"]}
    )
    evaluation = evaluate(rows, "faithfulness", judge=judge, by=["model"])
    frame = evaluation.to_pandas()

    unknown = "contexts_unknown: nothing shows which documents the model saw"
    told = [
        (None, None, unknown),
        (None, None, "no_contexts"),
        (1.0, "pass", "No unsupported claim was found (1 compared)."),
    ]
    names = ("row", "record_id", "question", "contexts", "response", "model")
    names += ("faithfulness", "faithfulness_label", "faithfulness_reason")
    assert frame.astype(object).replace({math.nan: None}).to_dict("records") == [
        dict(zip(names, (at, f"row-{at}", question, contexts, "r", model, *outcome), strict=True))
        for (at, question, contexts, model), outcome in zip(
            [(1, "a", None, "x"), (2, "b", [], "y"), (3, "c", ["r"], "x")], told, strict=True
        )
    ]
    assert list(rows.join(frame["faithfulness_label"])["faithfulness_label"])[2] == "pass"
    assert evaluation.by_dimension["model"]["x"]["faithfulness"].scored == 1
    lines = [line.split() for line in str(evaluation).splitlines()]
    assert ["model", "metric", "mean", "scored", "passed"] in lines
    assert ["x", "faithfulness", "1.000", "1", "100%"] in lines
    assert ["y", "faithfulness", "-", "0", "-"] in lines

    empty = evaluate(rows[:0], METRICS, judge=judge)
    assert (empty.rows, len(empty.to_pandas())) == (0, 0)
    assert (empty.summary["faithfulness"].mean, empty.why_not_scored) == (None, "there are no answers")
