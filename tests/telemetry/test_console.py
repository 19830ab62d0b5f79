"""Scores on the console."""

import io
import sys
import time
from types import SimpleNamespace

import pytest

from ragspan import Background, MetricFailure, NotApplicable, RagRecord, Score, ScoredRecord
from ragspan.records import Retrieval
from ragspan.telemetry.console import ConsoleEmitter

WAITING = "ragspan: scores appear here when they come; ragspan.default_engine().flush(30) waits for them"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def scored(outcomes, **given):
    record = RagRecord(
        question="When?",
        contexts=["c"],
        response="At\nnight.",
        name="desk",
        record_id="r-1",
        started_ns=10,
        ended_ns=2_000_010,
    )
    return ScoredRecord(record=record, outcomes=outcomes, **given)


def printed(answer, *, file=None, **options):
    file = file or io.StringIO()
    ConsoleEmitter(file=file, **options).emit(answer)
    return file.getvalue()


OUTCOMES = {
    "faithfulness": Score(value=0.5, threshold=0.8, explanation="1 of 2 claims unsupported", judge="overlap"),
    "adherence": Score(value=0.5, threshold=0.8, explanation="1 of 2 claims unsupported", judge="overlap"),
    "completeness": Score(value=0.9, threshold=0.5, explanation="all is there", judge="overlap"),
    "context_relevance": NotApplicable(reason="no_contexts"),
    "context_utilization": MetricFailure(error_type="timeout", message="secret"),
}


def test_a_card_says_what_was_asked_and_answered_and_each_fact_once():
    assert printed(scored(OUTCOMES)).splitlines() == [
        "desk  2 ms",
        "  question             When?",
        "  response             At night.",
        "  contexts             1 document from the program",
        "  faithfulness         0.50 fail  1 of 2 claims unsupported",
        "  adherence            0.50 fail",
        "  completeness         0.90 pass  all is there",
        "  context_relevance    -    no_contexts",
        "  context_utilization  -    timeout",
        "  judged by            overlap",
    ]


@pytest.mark.parametrize("variable", [None, "false"])
def test_what_is_hidden_is_not_printed(monkeypatch, variable):
    if variable:
        monkeypatch.setenv("RAGSPAN_CAPTURE_CONTENT", variable)

    shown = printed(scored(OUTCOMES), capture_content=None if variable else False)

    assert shown.splitlines()[1:3] == [
        "  record               r-1",
        "  contexts             1 document from the program",
    ]
    assert "night" not in shown


def search(name):
    return Retrieval(name=name, query="q", contexts=(), started_ns=1, ended_ns=2)


ADVICE = "name what searches: RAGSPAN_RETRIEVAL_TOOLS, record_contexts()"
BACKGROUND = [Background(text="b", kind=kind) for kind in ("metadata", "tool", "tool", "history", "other")]
TOLD = "1 metadata text, 2 tool results, 1 earlier message, 1 other text"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"contexts": ["c"], "retrievals": tuple(map(search, ("wiki", "faq")))}, "1 document from wiki, faq"),
        ({"contexts": ["c", "d"]}, "2 documents from the program"),
        ({"contexts": []}, "none"),
        ({"contexts": None}, "not known"),
        ({"contexts": None, "contexts_unknown": "picture"}, "not known: picture"),
        ({"contexts": None, "contexts_unknown": "unmarked_text"}, f"not known: unmarked_text; {ADVICE}"),
        ({"contexts": [], "background": BACKGROUND}, f"no documents; {TOLD}"),
        ({"contexts": ["c"], "background": BACKGROUND}, f"1 document from the program; {TOLD}"),
        ({"contexts": None, "background_is_prompt": True}, "the text of the prompts"),
    ],
    ids=str,
)
def test_a_card_says_where_the_contexts_came_from(given, said):
    record = RagRecord(question="q", response="r", **given)

    assert f"  contexts             {said}\n" in printed(ScoredRecord(record=record, outcomes=OUTCOMES))


def test_what_has_no_score_by_any_metric_is_one_line():
    reason = NotApplicable(reason="answer_aborted")
    lines = printed(scored({"faithfulness": reason, "completeness": reason})).splitlines()

    assert lines[4:] == ["  not scored           -    answer_aborted"]


def test_there_are_colours_on_a_terminal_only(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    record = RagRecord(question="q", contexts=[], response="r", status="aborted", started_ns=0, ended_ns=1_500_000)
    card = ScoredRecord(record=record, outcomes=OUTCOMES, refusal=True, late=True)

    assert printed(card, file=Terminal()).replace("\x1b[0m", ">").replace("\x1b[", "<").splitlines() == [
        "<1manswer><1;36m  2 ms><1;33m  aborted><1;33m  the response is a refusal><1;33m  late scores>",
        "  faithfulness         0.50 <31mfail><2m  1 of 2 claims unsupported>",
        "  adherence            0.50 <31mfail>",
        "  completeness         0.90 <32mpass><2m  all is there>",
        "  context_relevance   <2m -    no_contexts>",
        "  context_utilization <33m -    timeout>",
        "<2m  judged by            overlap>",
    ]
    assert "\x1b" not in printed(card)


def test_text_of_an_answer_is_no_markup_and_no_escape_sequence():
    record = RagRecord(question="[red]q[/red]", contexts=[], response="a\x1b[2Jb", name="[bold]x")
    shown = printed(ScoredRecord(record=record, outcomes={}), capture_content=True)

    assert "[red]q[/red]" in shown
    assert "[bold]x" in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize(
    ("outcome", "shown"),
    [
        (
            NotApplicable(reason="cannot_tell", detail="whether 1 of 2 claims"),
            "-    cannot_tell: whether 1 of 2 claims",
        ),
        (NotApplicable(reason="a" * 201), f"-    {'a' * 199}…"),
        (MetricFailure(error_type="RateLimit", message="secret", status=429), "-    RateLimit (HTTP 429)"),
        (MetricFailure(error_type="timeout", message="secret"), "-    timeout"),
        (Score(value=0.994, threshold=0.5, explanation=f"{'a' * 120}. And more."), f"0.99 pass  {'a' * 99}…"),
        (Score(value=0.1, threshold=0.5, explanation="a" * 401), f"0.10 fail  {'a' * 399}…"),
        (Score(value=0.5, explanation="First. Second."), "0.50   First. Second."),
        (Score(value=0.9, threshold=0.5, explanation="First. Second."), "0.90 pass  First."),
    ],
    ids=str,
)
def test_an_outcome_is_one_line(outcome, shown):
    lines = printed(scored({"faithfulness": outcome, "adherence": Score(value=1.0)})).splitlines()

    assert next(line for line in lines if line.startswith("  faithfulness")).split("faithfulness")[1].strip() == shown


class Shell:
    """A notebook's: what IPython hands out in the kernel of one."""

    kernel = object()

    def __init__(self):
        self.outputs, self.hooks = {}, {}
        self.events = SimpleNamespace(register=self.hooks.__setitem__)

    def display(self, card, *, display_id, update):
        assert update == (display_id in self.outputs)
        self.outputs[display_id] = card.plain.splitlines()


def test_in_a_notebook_scores_are_shown_where_they_were_asked_for(monkeypatch):
    shell, asked = Shell(), [0]
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", shell)
    emitter = ConsoleEmitter()
    emitter.is_used_by(SimpleNamespace(stats=lambda: SimpleNamespace(submitted=asked[0])))
    ended = []
    for number in (1, 0, 1):
        shell.hooks["pre_run_cell"]("info")
        asked[0] += number
        ended.append(time.time_ns())
        shell.hooks["post_run_cell"]("result")
    places = list(shell.outputs)
    assert list(shell.outputs.values()) == [[WAITING]] * 2

    for at in (ended[2], ended[0], ended[0], 0):
        record = RagRecord(question=None, contexts=[], response=None, name=str(at), started_ns=at)
        emitter.emit(ScoredRecord(record=record, outcomes={}))
    first, third, before = (shell.outputs[place] for place in shell.outputs)
    assert [shell.outputs[place][0] for place in places] == [f"{ended[0]}  0 ms", f"{ended[2]}  0 ms"]
    assert [len(first), len(third), len(before)] == [4, 2, 2]
