"""What a run tells a CI system: test results as JUnit has them, and a summary of the job in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from ragspan.evaluate.evaluated import Evaluation
from ragspan.evaluate.gates import GateResult, lowest
from ragspan.evaluate.summaries import SUMMARY_HEADER
from ragspan.telemetry.values import legible

_WORST_SHOWN = 5
_LONGEST_CELL = 300  # characters
_ESCAPED = {ord(sign): f"&#{ord(sign)};" for sign in "&<>|`*[]!#@~"}


def write_junit(evaluation: Evaluation, gates: Sequence[GateResult], path: Path) -> None:
    """Write a test case for each gate; without gates one for each metric, which fails if it has no score.

    Raises:
        OSError: the file cannot be written.
    """
    suite = ET.Element("testsuite", name=_name(evaluation), time=f"{evaluation.seconds:.3f}")
    cases = [(str(result.gate), result.gate.metric, result.trouble) for result in gates]
    if not gates:
        cases = [
            (
                f"{one.metric} should have scores",
                one.metric,
                None if one.scored + one.refusals else one.reasons or "no rows",
            )
            for one in evaluation.summary.values()
        ]
    for name, metric, trouble in cases:
        case = ET.SubElement(suite, "testcase", classname=f"ragspan.{metric}", name=name)
        if trouble is not None:
            failure = ET.SubElement(case, "failure", message=_for_xml(trouble))
            failure.text = _for_xml("\n".join([trouble, *lowest(evaluation, metric)]))
    suite.set("tests", str(len(cases)))
    suite.set("failures", str(sum(trouble is not None for *_, trouble in cases)))
    root = ET.Element("testsuites")
    root.append(suite)
    ET.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def append_summary(evaluation: Evaluation, gates: Sequence[GateResult], path: Path) -> None:
    """Append the summary of the run.

    Raises:
        OSError: the file cannot be written.
    """
    with path.open("a", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in summary_lines(evaluation, gates))


def summary_lines(evaluation: Evaluation, gates: Sequence[GateResult]) -> Iterator[str]:
    """The gates, the figures of each metric, and the worst responses, in lines of Markdown."""
    yield f"### {_cell(_name(evaluation))}"
    yield ""
    for result in gates:
        yield f"- {'✅' if result.trouble is None else '❌'} {_cell(result.trouble or str(result))}"
    if gates:
        yield ""
    yield f"| {' | '.join(SUMMARY_HEADER)} | not scored |"
    yield f"|{' --- |' * (len(SUMMARY_HEADER) + 1)}"
    for summary in evaluation.summary.values():
        yield f"| {' | '.join(map(_cell, (*summary.cells(), summary.reasons)))} |"
    failing = evaluation.worst_responses[:_WORST_SHOWN]
    if failing:
        yield ""
        yield "| row | question | response | fails |"
        yield "| --- | --- | --- | --- |"
    for row in failing:
        reasons = "; ".join(f"{metric} {score.value:.2f}: {score.explanation}" for metric, score in row.failing.items())
        cells = (row.record.record_id, row.record.question or "", row.record.response or "", reasons)
        yield f"| {' | '.join(map(_cell, cells))} |"
    yield ""


def _for_xml(text: str) -> str:
    """The text without the signs that XML cannot hold."""
    return legible(text).replace("\ufffe", "?").replace("\uffff", "?")


def _name(evaluation: Evaluation) -> str:
    return f"ragspan: {evaluation.source or 'evaluation'}"


def _cell(text: str) -> str:
    """A text that is neither Markdown nor HTML, on one line, and cut if it is long."""
    return legible(" ".join(text.split())[:_LONGEST_CELL]).translate(_ESCAPED)
