"""The figures of the benchmarks are what they are called, also where the programs that print them take minutes."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from ragspan import RagRecord
from ragspan.evaluate.agreement import Estimate

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

# Agreement with people: calibration, ranks, held-out sources


def test_bins_hold_both_ends_of_the_scale_and_weigh_both_labels_alike(part):
    bins = part("agreeing.calibration").bins_of([0.0, 0.05, 1.0, 0.95, 0.91], [False, True, True, True, False])

    assert [(one.low, one.answers) for one in bins] == [(0.0, 2), (0.9, 3)]
    assert bins[0].share == pytest.approx((1 / 3) / (1 / 3 + 1 / 2))
    assert bins[1].share == pytest.approx((2 / 3) / (2 / 3 + 1 / 2))


def test_the_fit_finds_the_logistic_curve_that_the_labels_follow(part):
    slope, middle = 4.0, 0.3
    shares = {value: 1 / (1 + math.exp(-slope * (value - middle))) for value in (0.0, 0.2, 0.4, 0.6, 0.8)}
    points = [
        (value, float(label), share if label else 1 - share) for value, share in shares.items() for label in (1, 0)
    ]

    assert part("agreeing.calibration").fit(points) == pytest.approx((slope, middle))


@pytest.mark.parametrize(
    ("values", "others", "weights", "expected"),
    [
        ([1, 2, 3, 4], [10, 20, 30, 99], [1, 1, 1, 1], 1.0),
        ([1, 2, 3], [3, 2, 1], [1, 1, 1], -1.0),
        ([1, 2, 3, 4], [1, 2, 2, 1], [1, 1, 1, 1], 0.0),
        ([5, 5, 9], [1, 2, 3], [1, 1, 1], 1.5 / math.sqrt(3)),  # ranks 1.5, 1.5, 3 against 1, 2, 3
        ([5, 9], [1, 3], [2, 1], 1.0),  # as of 5, 5, 9 against 1, 1, 3
    ],
)
def test_spearman_looks_at_the_order_alone_and_gives_ties_the_mean_of_their_ranks(
    part, values, others, weights, expected
):
    assert part("agreeing.figures").spearman(values, others)(weights) == pytest.approx(expected)


def test_the_difference_of_figures_of_the_same_resamples_has_no_chance_in_what_they_share(part):
    estimate, lower = Estimate(value=0.7, resampled=(0.6, 0.7, 0.8)), Estimate(value=0.6, resampled=(0.5, 0.6, 0.7))

    assert part("agreeing.figures").difference(estimate, lower).interval == pytest.approx((0.1, 0.1))


def judgements(part, *labels, held_out):
    """Copied answers first and invented ones after them, in halves, with these labels."""
    made = part("agreeing.judgements")
    copied, invented = "The bakery of Lisbon sells bread every Monday.", "Nobody would buy 700 umbrellas in Reykjavik."
    sources = map(str, itertools.count())
    found = []
    for text, label in zip([copied] * (len(labels) // 2) + [invented] * (len(labels) // 2), labels, strict=True):
        record = RagRecord(question="What is sold?", contexts=[copied], response=text)
        one = made.Judgement(
            record=record, source="", supported=label, faithfulness=None, completeness=None, recorded={}
        )
        candidates = (dataclasses.replace(one, source=source) for source in sources)
        found.append(next(candidate for candidate in candidates if candidate.held_out == held_out))
    return made.JudgementSet(name="made up", judgements=tuple(found))


def test_held_out_sources_have_no_part_in_the_fit(part):
    fitted = part("agreeing.calibration").fitted
    seen = judgements(part, True, True, False, True, False, False, held_out=False)
    unseen = judgements(part, False, False, True, True, held_out=True)

    slope, middle = fitted([seen])

    assert slope > 0
    assert 0 < middle < 1
    assert fitted([seen, unseen]) == (slope, middle)


@pytest.mark.parametrize("labels", [(True, True, False, False), (False, False, True, True), (True, True, True, True)])
def test_labels_that_a_score_tells_apart_determine_no_curve(part, labels):
    assert part("agreeing.calibration").fitted([judgements(part, *labels, held_out=False)]) is None


# Alarms


@pytest.fixture(scope="module")
def alarms(part):
    return part("alarms")


def stream(alarms, *parts):
    """Parts of (steps, scores a step, share of failures)."""
    scores = np.concatenate([np.full(steps, float(each)) for steps, each, _ in parts])
    failures = np.concatenate([np.full(steps, each * share) for steps, each, share in parts])
    return alarms.Stream(scores=scores, failures=failures)


def test_with_many_scores_the_evidence_is_the_difference_in_standard_errors(alarms):
    made = stream(alarms, (alarms.LEARNING, 100, 0.5), (alarms.HALF_HOUR, 100, 0.55))

    found = alarms.evidence(made, alarms.HALF_HOUR)[-1]

    assert found == pytest.approx(0.05 / math.sqrt(0.25 / 600), rel=0.01)


def test_a_share_that_stays_gives_no_evidence(alarms):
    made = stream(alarms, (alarms.LEARNING + 50, 10, 0.2))

    assert alarms.evidence(made, alarms.SIX_HOURS)[-1] == pytest.approx(0, abs=0.05)
    assert not alarms.pages(made).any()


@pytest.mark.parametrize("parts", [[(100, 10, 0.9)], [(3000, 0.01, 0.1), (50, 0.01, 0.9)]])
def test_without_a_past_or_without_enough_scores_nothing_is_said(alarms, parts):
    assert not alarms.pages(stream(alarms, *parts)).any()


def test_a_page_that_comes_back_within_an_hour_is_the_same_page(alarms):
    on = np.zeros(100, dtype=bool)
    on[[10, 11, 20, 60]] = True

    assert alarms.beginnings(on).tolist() == [10, 60]


# Rates


def test_with_fewer_unsupported_answers_the_metric_errs_as_often_on_each_kind(part):
    fair = part("rates").made_up()[0]
    rare = fair.with_rate(0.03)

    assert sum(rare.shares) == pytest.approx(1)
    assert rare.rate == pytest.approx(0.03)
    assert rare.shares[0] / rare.rate == pytest.approx(fair.shares[0] / fair.rate)
    assert rare.shares[1] / (1 - rare.rate) == pytest.approx(fair.shares[1] / (1 - fair.rate))


@pytest.mark.parametrize("labels", [50, 1000])
def test_intervals_hold_the_rate_as_often_as_they_say(part, labels):
    rates = part("rates")
    row = rates.row_of(rates.made_up()[0], labels, 2000, np.random.default_rng(3))

    assert 0.93 <= row.coverage <= 0.97
    assert row.width < row.width_of_labels


# Grades of captures

QUESTION, PASSAGES, ANSWER = "How long?", ["Three years.", "By hand."], "It runs for three years."


@dataclass(frozen=True)
class Wanted:
    """What a test says of a record."""

    question: str | None = QUESTION
    contexts: list[str] | None = None
    response: str | None = ANSWER
    status: str = "complete"
    background: list[tuple[str, str]] | None = None


RIGHT = {"contexts": PASSAGES}
LEFT = {"contexts": PASSAGES, "response": "It", "status": "aborted"}
TOOL = RIGHT | {"background": [("tool", "Open at nine.")]}
STRICT, LOOSE = ((), True), ((), False)
"""Right as it stands; right in another form. What is wrong has a fault."""
GRADES = {
    "as expected": (RIGHT, {}, STRICT),
    "another order": (RIGHT, {"contexts": ("By hand.", "Three years.")}, LOOSE),
    "repetition": (RIGHT, {"contexts": ("Three years.", "By hand.", "Three years.")}, LOOSE),
    "white space": (RIGHT, {"contexts": ("Three\n years.", "By hand.")}, LOOSE),
    "JSON": (RIGHT, {"question": f'{{"input": "{QUESTION}"}}'}, LOOSE),
    "Python data": (RIGHT, {"question": str({"messages": [("user", QUESTION)]})}, LOOSE),
    "data": (RIGHT, {"response": {"output": ANSWER, "steps": 3}}, LOOSE),
    "representation": (RIGHT, {"response": f"StopEvent(result=AgentOutput('{ANSWER}'))"}, LOOSE),
    "without metadata": ({"contexts": ["book: pumps\n\nThree years."]}, {"contexts": ("Three years.",)}, LOOSE),
    "metadata alone": ({"contexts": ["book: pumps\n\nThree years."]}, {"contexts": ("book: pumps",)}, "contexts"),
    "an object": (RIGHT | {"response": '{"years": 3}'}, {"response": {"parsed": {"years": 3}}}, LOOSE),
    "another object": (RIGHT | {"response": '{"years": 3}'}, {"response": {"parsed": {"years": 4}}}, "response"),
    "none found": ({"contexts": []}, {"contexts": ()}, STRICT),
    "not observable": ({"contexts": None}, {"contexts": None}, STRICT),
    "not observable, and taken for none": ({"contexts": None}, {"contexts": ()}, LOOSE),
    "none expected": ({"contexts": None}, {}, "contexts"),
    "no question": (RIGHT, {"question": ""}, "question"),
    "another question": (RIGHT, {"question": "Rephrased?"}, "question"),
    "one too few": (RIGHT, {"contexts": ("Three years.",)}, "contexts"),
    "one too many": (RIGHT, {"contexts": ("Three years.", "By hand.", "In Lyon.")}, "contexts"),
    "background": (TOOL, {"background": ("Open at nine.",)}, STRICT),
    "background among the contexts": (TOOL, {"contexts": (*PASSAGES, "Open at nine.")}, LOOSE),
    "background in a longer context": (TOOL, {"background": ("It says: Open at nine.",)}, LOOSE),
    "no background": (TOOL, {}, "background"),
    "background of which nothing is said": (RIGHT, {"background": ("Open at nine.",)}, STRICT),
    "too much background": (RIGHT | {"background": []}, {"background": ("Open at nine.",)}, LOOSE),
    "no answer": (RIGHT, {"response": None}, "response"),
    "a part of the answer": (RIGHT, {"response": "It runs"}, "response"),
    "unfinished, scored as if whole": (LEFT, {"response": "It"}, "unfinished"),
    "unfinished": (LEFT, {"response": "It", "is_unfinished": True}, STRICT),
    "unfinished without a response": (LEFT, {"response": None}, LOOSE),
}


@pytest.mark.parametrize(("wanted", "seen", "grade"), GRADES.values(), ids=GRADES)
def test_what_was_seen_of_a_request_is_graded_generously_and_strictly(part, wanted, seen, grade):
    grading = part("capturing.grading")
    one = grading.Seen(**{"question": QUESTION, "contexts": tuple(PASSAGES), "response": ANSWER} | seen)
    (request,) = grading.grade([Wanted(**wanted)], [one]).requests

    faults, is_strictly_right = ((grade,), False) if isinstance(grade, str) else grade
    assert (request.faults, request.is_strictly_right) == (faults, is_strictly_right)


@pytest.mark.parametrize(("wanted", "faults"), [({}, ("missed",)), ({"status": "error", "response": None}, ())])
def test_a_request_that_nobody_saw_is_missed_unless_it_was_not_finished(part, wanted, faults):
    (request,) = part("capturing.grading").grade([Wanted(**wanted)], []).requests

    assert (request.faults, request.is_strictly_right) == (faults, False)


@pytest.mark.parametrize(
    ("passages", "faults"),
    [
        ((["a"], ("b",), ["b"], ("b",)), [("contexts", "mixed up"), ()]),
        ((["a", "b"], ("a", "b", "c"), ["b", "c"], ("b",)), [("contexts", "mixed up"), ("contexts",)]),
    ],
)
def test_passages_of_another_request_are_mixed_up(part, passages, faults):
    grading = part("capturing.grading")
    first, seen_of_first, second, seen_of_second = passages
    wanted = [Wanted("First?", first, "One."), Wanted("Second?", second, "Two.")]
    seen = [
        grading.Seen(question="Second?", contexts=seen_of_second, response="Two."),
        grading.Seen(question="First?", contexts=seen_of_first, response="One."),
    ]

    assert [request.faults for request in grading.grade(wanted, seen).requests] == faults


def test_only_what_would_be_scored_is_made_up(part):
    grading = part("capturing.grading")
    whole = grading.Seen(question="Inner?", contexts=("a",), response="One.")
    others = [dataclasses.replace(whole, is_unfinished=True), dataclasses.replace(whole, contexts=())]

    made_up = grading.grade([], [whole, *others]).made_up

    assert [(seen["is_unfinished"], seen["contexts"]) for seen in made_up] == [(False, ["a"])]


def case(*faults, name="a_case", error=None, made_up=0):
    """The report of a case, with the faults of each of its requests."""
    requests = [{"faults": list(of_one), "is_strictly_right": not of_one, "seen": None} for of_one in faults]
    comparisons = [{"requests": requests, "made_up": [{}] * made_up}] if faults or made_up else []
    return {"theme": "calling", "name": name, "comparisons": comparisons, "error": error}


TALLIES = {
    "all or nothing": (
        [case([], [], name="both"), case([], [], name="one")],
        [case([], [], name="both"), case([], ["question"], name="one")],
        ((1, 2), (3, 4), {"question": 1}),
    ),
    "made up": ([case([])], [case([], made_up=2)], ((0, 1), (1, 1), {"made up": 2})),
    "failed": ([case([])], [case(error="TypeError: no")], ((0, 1), (0, 1), {"program failed": 1})),
}


@pytest.mark.parametrize(("reference", "reported", "row"), TALLIES.values(), ids=TALLIES)
def test_a_case_is_right_when_all_its_requests_are_and_nothing_was_made_up(part, reference, reported, row):
    tallied = part("capturing.results").tally("langchain", "peer", "1", reference, reported)

    right, requests, faults = row
    assert ((tallied.cases_right, tallied.cases), (tallied.requests_right, tallied.requests)) == (right, requests)
    assert tallied.faults == faults
    assert tallied.themes == {"calling": right}


def test_requests_whose_contexts_are_said_to_be_unknown_are_counted(part):
    reported = case([], [], ["missed"])
    requests = reported["comparisons"][0]["requests"]
    requests[0]["seen"], requests[1]["seen"] = {"contexts": None}, {"contexts": []}

    tallied = part("capturing.results").tally("langchain", "peer", "1", [reported], [reported])

    assert (tallied.requests, tallied.requests_of_unknown_contexts) == (3, 1)


def test_only_what_is_a_case_with_ragspan_is_a_measure_for_others(part):
    results = part("capturing.results")

    assert len(results.are_cases([case([]), case(name="without_a_comparison")])) == 1
    with pytest.raises(RuntimeError, match="calling: a_case: ValueError"):
        results.are_cases([case(error="ValueError: wrong")])


# The cost of judges


@pytest.fixture(scope="module")
def sent(part):
    return part("judging.prompts_sent")


@pytest.fixture
def cost_of(sent):
    """What exchanges cost where each character is a token."""
    return lambda *exchanges: sent.cost_of(list(exchanges), sent.Tokenizer(name="characters", count=len))


def exchange(content, *, reply="yes", **more):
    return {"request": {"messages": [{"role": "user", "content": content}], **more}, "reply": reply}


def test_a_prefix_is_shared_with_the_earlier_request_that_has_most_of_it(cost_of):
    cost = cost_of(exchange("abcdef"), exchange("xyz"), exchange("abcxyz"))

    assert cost.prompt_tokens == 3 * len("user\n") + 6 + 3 + 6
    assert cost.cacheable_tokens == len("user\n") + len("user\nabc")
    assert cost.common_tokens == 3 * len("user\n")


@pytest.mark.parametrize(("shared", "cached"), [(1023, 0), (1024, 1024), (1151, 1024), (1152, 1152)])
def test_a_cache_serves_from_1024_tokens_on_and_in_steps_of_128(cost_of, shared, cached):
    text = "a" * (shared - len("user\n"))
    cost = cost_of(exchange(text + "b"), exchange(text + "c"))

    assert (cost.cacheable_tokens, cost.cached_tokens) == (shared, cached)


def test_a_schema_belongs_to_the_prompt_and_comes_first(sent):
    schema = {"type": "json_schema"}

    assert sent.prompt_of(exchange("abc", response_format=schema)["request"]) == f"{json.dumps(schema)}\nuser\nabc"


def test_each_choice_counts_as_a_completion(cost_of):
    assert cost_of(exchange("abc", reply="12345", n=3), exchange("abc", reply="1")).completion_tokens == 16


# The peers' processes

OFFLINE = """
import json, socket
from peers.offline import stay_offline

refused, errors = stay_offline(), []
with socket.create_server(("127.0.0.1", 0)) as server:
    socket.create_connection(server.getsockname(), timeout=5).close()
for address in (("192.0.2.1", 80), ("192.0.2.1", 443), ("stats.example", 443)):
    try:
        socket.create_connection(address, timeout=5)
    except OSError as error:
        errors.append(str(error))
print(json.dumps({"refused": refused, "errors": errors}))
"""


def test_a_peer_reaches_only_this_machine_and_each_refusal_is_noted_once():
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE], cwd=BENCHMARKS, capture_output=True, text=True, check=True, timeout=60
    )
    seen = json.loads(done.stdout)

    assert seen["refused"] == ["192.0.2.1", "stats.example"]
    assert len(seen["errors"]) == 3
    assert all("is not this machine" in error for error in seen["errors"])
