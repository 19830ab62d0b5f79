"""The page of a report, and the data that its script draws. `e2e/test_report.py` has it in a browser."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from ragspan import MetricFailure, NotApplicable, RetrievedContext, Score
from ragspan.evaluate.gates import Gate, check_gates
from ragspan.evaluate.report import show_failing
from ragspan.evaluate.rows import BadRow
from ragspan.judges.judge_protocols import ClaimVerdict, ContextRating
from ragspan.metrics import JudgedContext
from ragspan.usage import Usage

HOSTILE = [
    "</script><script>hacked()</script>",
    '"><img src=x onerror=hacked()>',
    "</title><h1>taken over</h1>",
    "@DATA@ @TITLE@ \\1",
    "nul \x00, esc \x1b, half \ud800, turned \u202e",
]


class Elements(HTMLParser):
    def __init__(self, source):
        super().__init__()
        self.tags = []
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))


def everywhere(answered, text):
    """A row with a text in every place that data or a judge can fill."""
    claim = ClaimVerdict(index=0, verdict="unsupported", claim=text, explanation=text)
    evidence = (claim, ContextRating(index=0, value=1, explanation=text))
    outcomes = {
        f"metric {text}": Score(value=0.1, threshold=0.5, explanation=text, judge=text, evidence=evidence),
        "absent": NotApplicable(reason=text, detail=text),
        "failed": MetricFailure(error_type=text, message=text),
    }
    context = RetrievedContext(text=text, id=text, source=text)
    return answered(1, outcomes, record_id=text, question=text, contexts=[context], response=text)


@pytest.mark.parametrize("text", HOSTILE)
def test_text_from_data_stays_text_in_every_place(text, answered, evaluation_of, page_of):
    hostile = evaluation_of([everywhere(answered, text)], bad_rows=[BadRow(row=2, reason=text)], source=text)
    source, data = page_of(hostile)

    tags = Elements(source).tags
    assert [attributes.get("type") for tag, attributes in tags if tag == "script"] == ["application/json", None]
    assert not [tag for tag, _ in tags if tag in {"img", "h1"}]
    assert not [name for _, attributes in tags for name in attributes if name.startswith("on")]
    shown = text.translate(dict.fromkeys((0x00, 0x1B, 0xD800, 0x202E), "\ufffd"))
    assert data["answers"][0]["response"]["text"] == shown
    assert data["title"] == f"RAG evaluation of {shown}"


def test_the_page_loads_nothing_and_runs_the_script_that_its_policy_names(answered, evaluation_of, page_of):
    source, _ = page_of(evaluation_of([answered(1, {"a": 0.2})]))

    (script,) = re.findall(r"<script>(.*?)</script>", source, re.DOTALL)
    (policy,) = re.findall(r'Content-Security-Policy" content="(.*?)"', source)
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert (rules["script-src"], rules["default-src"]) == (f"'sha256-{digest}'", "'none'")
    assert not [name for _, attributes in Elements(source).tags for name in attributes if name in {"src", "href"}]


def test_the_data_say_which_run_it_is_whether_gates_held_and_what_it_cost(answered, evaluation_of, page_of):
    rows = [answered(row, {"a": 0.9}) for row in range(1, 10)]
    usage = Usage(requests=12, input_tokens=900, output_tokens=100, usd=0.5)
    bad = [BadRow(row=row, reason="it is not JSON") for row in range(10, 31)]
    evaluation = evaluation_of(rows, usage=usage, source="november.csv", bad_rows=bad)
    gates = check_gates(evaluation, [Gate(metric="a", kind="mean", minimum=minimum) for minimum in (0.5, 0.95)])
    _, data = page_of(evaluation, gates=gates)

    assert data["title"] == "RAG evaluation of november.csv"
    assert [gate["held"] for gate in data["gates"]] == [True, False]
    assert (data["figures"]["rows"], data["figures"]["usage"]["usd"], len(data["bad_rows"])) == (9, 0.5, 20)


def test_the_worst_answers_have_most_room(answered, evaluation_of):
    claims = tuple(ClaimVerdict(index=at, verdict="supported", claim=f"{at}") for at in range(45))
    useful = tuple(JudgedContext(index=at, id=None, rank=None, value=float(at > 22)) for at in range(25))

    def row(at):
        score = Score(value=at / 100, threshold=0.9, explanation=f"{at} " + "e" * 2000, evidence=claims + useful)
        contexts = [f"{number:02} {'c' * 997}" for number in range(25)]
        texts = {"question": "q" * 5000, "contexts": contexts, "response": f"{at} " + "r" * 9000}
        return answered(at, {"chunk_attribution": score}, **texts)

    found = show_failing(evaluation_of(map(row, range(10, 61))))

    def room(one):
        question, response, contexts = one["question"], one["response"], one["contexts"]
        explanation = one["scores"][0]["explanation"]
        texts = [question["text"], response["text"], contexts[0]["text"], one["finding"], explanation]
        return [*map(len, [*texts, one["claims"], contexts]), question["omitted"], response["omitted"]]

    assert room(found["answers"][49]) == [1200, 3600, 360, 300, 1500, 40, 20, 3800, 5403]
    assert room(found["answers"][50]) == [90, 270, 27, 300, 1500, 40, 20, 4910, 8733]
    assert [one["number"] for one in found["answers"][0]["contexts"]] == [*range(1, 19), 24, 25], "the useful ones"
    assert found["documents"] == [{"name": f"{at:02} {'c' * 56}…", "failing": 51, "answers": 51} for at in range(20)]
