"""The benchmark of captures runs, and grades as it says."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

QUESTION, PASSAGES, ANSWER = "How long?", ["Three years.", "By hand."], "It runs for three years."


@dataclass(frozen=True)
class Wanted:
    """What a test says of a record."""

    question: str | None = QUESTION
    contexts: list[str] | None = None
    response: str | None = ANSWER
    status: str = "complete"


@pytest.fixture
def grading(part):
    return part("capturing.grading")


@pytest.fixture
def graded(grading):
    """Grades what was seen of one request, by default a right one."""

    def grade(wanted=None, *more, **seen):
        wanted = wanted or Wanted(contexts=PASSAGES)
        one = grading.Seen(**{"question": QUESTION, "contexts": tuple(PASSAGES), "response": ANSWER} | seen)
        (request,) = grading.grade([wanted], [one, *more]).requests
        return request

    return grade


# Generously


def test_what_is_as_expected_is_right_in_both_grades(graded):
    request = graded()

    assert request.faults == ()
    assert request.is_strictly_right


@pytest.mark.parametrize(
    "seen",
    [
        {"contexts": ("By hand.", "Three years.")},
        {"contexts": ("Three years.", "By hand.", "Three years.")},
        {"contexts": ("Three\n years.", "By hand.")},
        {"question": f'{{"input": "{QUESTION}"}}'},
        {"question": str({"messages": [("user", QUESTION)]})},
        {"response": {"output": ANSWER, "steps": 3}},
        {"response": f"StopEvent(result=AgentOutput('{ANSWER}'))"},
    ],
    ids=["order", "repetition", "white space", "JSON", "Python data", "data", "representation"],
)
def test_what_holds_the_expected_in_another_form_is_right_but_not_strictly(graded, seen):
    request = graded(**seen)

    assert request.faults == ()
    assert not request.is_strictly_right


def test_a_passage_may_lack_the_metadata_before_it(graded):
    wanted = Wanted(contexts=["book: pumps\n\nThree years."])

    assert graded(wanted, contexts=("Three years.",)).faults == ()
    assert graded(wanted, contexts=("book: pumps",)).faults == ("contexts",)


def test_a_structured_answer_is_compared_as_data(graded):
    wanted = Wanted(contexts=PASSAGES, response='{"years": 3}')

    assert graded(wanted, response={"parsed": {"years": 3}}).faults == ()
    assert graded(wanted, response={"parsed": {"years": 4}}).faults == ("response",)


@pytest.mark.parametrize("contexts", [[], None], ids=["none found", "not observable"])
def test_a_library_need_not_tell_no_contexts_from_unknown_ones(graded, contexts):
    assert graded(Wanted(contexts=contexts), contexts=()).is_strictly_right
    assert graded(Wanted(contexts=contexts)).faults == ("contexts",)


# What is wrong


@pytest.mark.parametrize(
    ("seen", "fault"),
    [
        ({"question": ""}, "question"),
        ({"question": "Rephrased?"}, "question"),
        ({"contexts": ("Three years.",)}, "contexts"),
        ({"contexts": ("Three years.", "By hand.", "In Lyon.")}, "contexts"),
        ({"response": None}, "response"),
        ({"response": "It runs"}, "response"),
    ],
    ids=["no question", "another question", "one too few", "one too many", "no answer", "a part of the answer"],
)
def test_a_field_that_is_wrong_is_named(graded, seen, fault):
    assert graded(**seen).faults == (fault,)


def test_a_request_that_nobody_saw_is_missed(grading):
    (request,) = grading.grade([Wanted()], []).requests

    assert request.faults == ("missed",)


def test_an_unfinished_answer_is_wrong_where_it_would_be_scored_like_a_finished_one(graded):
    left = Wanted(contexts=PASSAGES, response="It", status="aborted")

    assert graded(left, response="It").faults == ("unfinished",)
    assert graded(left, response="It", is_unfinished=True).is_strictly_right
    assert graded(left, response=None).faults == ()


def test_an_unfinished_request_that_nobody_saw_is_scored_by_nobody(grading):
    (request,) = grading.grade([Wanted(status="error", response=None)], []).requests

    assert request.faults == ()
    assert not request.is_strictly_right


def test_a_field_of_another_request_is_mixed_up(grading):
    wanted = [Wanted("First?", ["a"], "One."), Wanted("Second?", ["b"], "Two.")]
    seen = [
        grading.Seen(question="Second?", contexts=("b",), response="Two."),
        grading.Seen(question="First?", contexts=("b",), response="One."),
    ]

    first, second = grading.grade(wanted, seen).requests

    assert first.faults == ("contexts", "mixed up")
    assert second.is_strictly_right


def test_another_requests_passages_beside_the_own_ones_are_mixed_up(grading):
    wanted = [Wanted("First?", ["a", "b"], "One."), Wanted("Second?", ["b", "c"], "Two.")]
    seen = [
        grading.Seen(question="First?", contexts=("a", "b", "c"), response="One."),
        grading.Seen(question="Second?", contexts=("b",), response="Two."),
    ]

    first, second = grading.grade(wanted, seen).requests

    assert first.faults == ("contexts", "mixed up")
    assert second.faults == ("contexts",)


def test_only_what_would_be_scored_is_made_up(grading):
    whole = grading.Seen(question="Inner?", contexts=("a",), response="One.")
    failed = grading.Seen(question="Inner?", contexts=("a",), response="One.", is_unfinished=True)
    without_contexts = grading.Seen(question="Inner?", contexts=(), response="One.")

    made_up = grading.grade([], [whole, failed, without_contexts]).made_up

    assert [seen["is_unfinished"] for seen in made_up] == [False]
    assert [seen["contexts"] for seen in made_up] == [["a"]]


# Counting


@pytest.fixture
def results(part):
    return part("capturing.results")


def case(*faults, name="a_case", error=None, made_up=0):
    """The report of a case, with the faults of each of its requests."""
    requests = [{"faults": list(of_one), "is_strictly_right": not of_one} for of_one in faults]
    comparisons = [{"requests": requests, "made_up": [{}] * made_up}] if faults or made_up else []
    return {"theme": "calling", "name": name, "comparisons": comparisons, "error": error}


def test_a_case_is_right_when_all_its_requests_are(results):
    reference = [case([], [], name="both"), case([], [], name="one")]
    row = results.tally(
        "langchain", "peer", "1", reference, [case([], [], name="both"), case([], ["question"], name="one")]
    )

    assert (row.cases_right, row.cases) == (1, 2)
    assert (row.requests_right, row.requests) == (3, 4)
    assert row.faults == {"question": 1}
    assert row.themes == {"calling": (1, 2)}


def test_a_case_beside_which_something_was_made_up_is_not_right(results):
    row = results.tally("langchain", "peer", "1", [case([])], [case([], made_up=2)])

    assert (row.cases_right, row.requests_right) == (0, 1)
    assert row.faults == {"made up": 2}


def test_a_case_that_a_peer_did_not_come_to_the_end_of_has_failed(results):
    row = results.tally("langchain", "peer", "1", [case([])], [case(error="TypeError: no")])

    assert (row.cases_right, row.requests_right, row.requests) == (0, 0, 1)
    assert row.faults == {"program failed": 1}


def test_a_program_that_is_no_case_with_ragspan_is_none_for_a_peer(results):
    cases = results.are_cases([case([]), case(name="without_a_comparison")])
    row = results.tally("langchain", "peer", "1", cases, [case([]), case(["missed"], name="without_a_comparison")])

    assert (row.cases_right, row.cases) == (1, 1)


def test_a_case_that_fails_with_ragspan_is_no_measure_for_others(results):
    with pytest.raises(RuntimeError, match="calling: a_case: ValueError"):
        results.are_cases([case(error="ValueError: wrong")])


# The program


@pytest.fixture(scope="module")
def counted(figures_of):
    """The figures of a quick run."""
    return figures_of("capture.py")


@pytest.mark.slow
def test_ragspan_and_what_is_installed_with_the_tests_run_the_same_cases(counted):
    rows = {(row["framework"], row["peer"]): row for row in counted}

    assert rows.keys() == {
        (framework, peer)
        for framework in ("langchain", "llama-index")
        for peer in ("ragspan", "receiver-openinference", "openinference")
    }
    for framework in ("langchain", "llama-index"):
        ours, theirs = rows[framework, "ragspan"], rows[framework, "openinference"]
        assert ours["cases"] == theirs["cases"] >= 15
        assert ours["requests_strictly_right"] == ours["requests"] >= ours["cases"]
        assert 0 < theirs["requests_right"] <= theirs["requests"]
        assert rows[framework, "receiver-openinference"]["requests_right"] >= 0.85 * ours["requests"]


@pytest.mark.slow
def test_every_case_says_what_was_expected_and_what_was_seen(counted):
    requests = [
        request
        for row in counted
        for case in row["details"]
        for comparison in case["comparisons"]
        for request in comparison["requests"]
    ]

    assert {"question", "contexts", "response", "status"} == set(requests[0]["expected"])
    assert all(request["seen"] or request["faults"] == ["missed"] for request in requests)
