"""Scores on the console."""

import io

import pytest

from ragspan import MetricFailure, NotApplicable, RagRecord, Score, ScoredRecord
from ragspan.telemetry.console import ConsoleEmitter


class Terminal(io.StringIO):
    def isatty(self):
        return True


def scored(outcomes, **given):
    record = RagRecord(
        question="When?", contexts=["c"], response="At\nnight.", name="desk", started_ns=10, ended_ns=2_000_010
    )
    return ScoredRecord(record=record, outcomes=outcomes, **given)


def printed(answer, *, file=None, **options):
    file = file or io.StringIO()
    ConsoleEmitter(file=file, **options).emit(answer)
    return file.getvalue()


def test_each_kind_of_outcome_has_a_line_of_its_own():
    shown = printed(
        scored(
            {
                "faithfulness": Score(
                    value=0.5, threshold=0.8, explanation="1 of 2 claims unsupported", judge="overlap"
                ),
                "completeness": Score(value=0.9, threshold=0.5, explanation="not shown", judge="overlap"),
                "context_adherence": NotApplicable(reason="no_contexts"),
                "context_utilization": MetricFailure(error_type="timeout", message="secret"),
            }
        ),
        explanations=True,
    )

    assert shown.splitlines() == [
        "invoke_workflow desk  2 ms  complete  1 context  judged by overlap",
        "  faithfulness         0.50 fail  1 of 2 claims unsupported",
        "  completeness         0.90 pass",
        "  context_adherence    -    no_contexts",
        "  context_utilization  -    timeout",
    ]


def test_what_has_no_score_by_any_metric_is_one_line():
    reason = NotApplicable(reason="answer_aborted")
    lines = printed(scored({"faithfulness": reason, "completeness": reason})).splitlines()

    assert lines[1:] == ["  not scored           -    answer_aborted"]


def test_nothing_of_the_question_or_the_response_is_printed_with_content_off():
    assert "night" not in printed(scored({}), capture_content=False)
    assert "At night." in printed(scored({}), capture_content=True)


def test_the_first_answer_that_fails_says_how_to_see_why():
    file = io.StringIO()
    emitter = ConsoleEmitter(file=file)
    failing = scored({"faithfulness": Score(value=0.1, threshold=0.8, label="fail")})

    for answer in (scored({"faithfulness": Score(value=0.9, threshold=0.8)}), failing, failing):
        emitter.emit(answer)

    assert file.getvalue().count("RAGSPAN_CAPTURE_CONTENT=true shows") == 1
    assert "CAPTURE_CONTENT" not in printed(failing, capture_content=True)
    assert "CAPTURE_CONTENT" not in printed(failing, explanations=False)


def test_there_are_colours_on_a_terminal_only(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    failing = scored({"faithfulness": Score(value=0.1, threshold=0.8)})

    assert "\x1b[31mfail" in printed(failing, file=Terminal())
    assert "\x1b" not in printed(failing)


def test_scores_that_come_late_are_told_apart():
    late = scored({"faithfulness": Score(value=0.9)}, late=True)

    assert "late scores" in printed(late, capture_content=True)
    assert "When?" not in printed(late, capture_content=True)


def test_text_of_an_answer_is_no_markup_and_no_escape_sequence():
    record = RagRecord(question="[red]q[/red]", contexts=[], response="a\x1b[2Jb", name="[bold]x")
    shown = printed(ScoredRecord(record=record, outcomes={}), capture_content=True)

    assert "[red]q[/red]" in shown
    assert "[bold]x" in shown
    assert "\x1b" not in shown


class ClosedPipe(io.StringIO):
    def write(self, text):
        raise BrokenPipeError


@pytest.mark.parametrize("file", [ClosedPipe(), io.StringIO()], ids=["pipe", "file"])
def test_where_nobody_reads_any_more_nothing_breaks(file):
    emitter = ConsoleEmitter(file=file)
    if not isinstance(file, ClosedPipe):
        file.close()

    emitter.emit(scored({"faithfulness": Score(value=0.9)}))
