import pytest

from ragspan import MetricFailure, Score, Usage
from ragspan_mlflow.emitter import assessment_of, change_of, found_in


def assessments(make, given, **options):
    return [assessment_of(one) for one in make.annotations(given, **{"failures": False, **options})]


def test_a_score_becomes_feedback_on_the_answers_span(make):
    usage = Usage(requests=2, input_tokens=900, output_tokens=40, usd=0.0002)
    score = Score(
        value=0.25,
        explanation="Two claims have no support.",
        threshold=0.5,
        judge="openai:gpt-4o-mini",
        prompt_version="7",
        usage=usage,
        fallback="budget_exhausted",
    )

    (written,) = assessments(make, make.scored({"faithfulness": score}, answer=0xABC, span=0x12))

    assert written.pop("assessment_id").startswith("a-")
    assert written == {
        "assessment_name": "faithfulness",
        "trace_id": "tr-00000000000000000000000000000abc",
        "span_id": "0000000000000012",
        "source": {"source_type": "LLM_JUDGE", "source_id": "openai:gpt-4o-mini"},
        "feedback": {"value": 0.25},
        "rationale": "Two claims have no support.",
        "metadata": {
            "ragspan.record_id": "r1",
            "ragspan.label": "fail",
            "ragspan.threshold": "0.5",
            "ragspan.prompt_version": "7",
            "ragspan.fallback": "budget_exhausted",
            "mlflow.assessment.judgeCost": "0.0002",
            "mlflow.assessment.judgeInputTokens": "900",
            "mlflow.assessment.judgeOutputTokens": "40",
        },
    }


@pytest.mark.parametrize(
    ("judge", "source_type"), [("openai:gpt-4o-mini", "LLM_JUDGE"), ("hhem", "CODE"), (None, "CODE")]
)
def test_the_judge_is_the_source(make, judge, source_type):
    (written,) = assessments(make, make.scored({"faithfulness": Score(value=1.0, judge=judge)}))

    assert written["source"] == {"source_type": source_type, "source_id": judge or "ragspan"}


def test_a_failure_is_feedback_with_an_error(make):
    failure = MetricFailure(error_type="Timeout", message="")

    (written,) = assessments(make, make.scored({"faithfulness": failure}), failures=True)

    assert written["feedback"] == {"error": {"error_code": "Timeout"}}
    assert written["source"] == {"source_type": "CODE", "source_id": "ragspan"}


def test_names_fit_into_mlflows_columns(make):
    (written,) = assessments(make, make.scored({"m" * 300: Score(value=1.0, judge="j" * 300)}))

    assert (len(written["assessment_name"]), len(written["source"]["source_id"])) == (250, 250)


def test_the_same_score_in_another_process_has_the_same_id(make):
    ids = {assessment_of(make.feedback(value))["assessment_id"] for value in (0.9, 0.3)}

    assert ids == {"a-7bae8825e4c65d6ab111c643ddca23b9"}  # at most 50 characters, which is what MLflow's column has


@pytest.mark.parametrize(
    "other", [{"metric": "completeness"}, {"answer": 2}, {"record": "r2"}, {"judge": "overlap"}], ids=str
)
def test_another_metric_trace_record_or_judge_makes_it_another_one(make, other):
    one, another = assessment_of(make.feedback()), assessment_of(make.feedback(**other))

    assert one["assessment_id"] != another["assessment_id"]


def test_the_span_does_not_make_it_another_one(make):
    """A record that is emitted anew has a new span in the same trace."""
    scores = {"faithfulness": Score(value=0.5)}

    first, second = (assessments(make, make.scored(scores, span=span))[0] for span in (1, 2))

    assert first["assessment_id"] == second["assessment_id"]


def test_feedback_is_known_by_its_record_where_the_server_gave_it_an_id(make):
    item = make.feedback()
    written = assessment_of(item) | {"assessment_id": "a-of-the-server"}
    others = [assessment_of(make.feedback(record="r2")), assessment_of(make.feedback(judge="overlap"))]

    assert found_in([*others, written], item) == written
    assert found_in(others, item) is None


def test_feedback_is_known_by_its_id_where_its_metadata_were_lost(make):
    written = {name: value for name, value in assessment_of(make.feedback()).items() if name != "metadata"}

    assert found_in([written], make.feedback()) == written


def test_an_assessment_without_metadata_is_another_ones(make):
    human = {"assessment_id": "a-1", "assessment_name": "faithfulness", "source": {"source_type": "HUMAN"}}

    assert found_in([human, {}], make.feedback()) is None


def test_nothing_has_to_be_changed_in_what_says_the_same(make):
    item = make.feedback(explanation="e")
    written = assessment_of(item)
    written["metadata"] = {**written["metadata"], "somebody": "else's"}

    assert change_of(written, item) is None


@pytest.mark.parametrize("facts", [{"value": 0.3}, {"explanation": "f"}, {"prompt_version": "8"}], ids=str)
def test_what_says_something_else_is_changed(make, facts):
    written = assessment_of(make.feedback(0.9, explanation="e", prompt_version="7"))
    wanted = make.feedback(**{"value": 0.9, "explanation": "e", "prompt_version": "7", **facts})

    change = change_of(written, wanted)

    assert change is not None
    assert change_of(written | change, wanted) is None


def test_a_note_that_no_longer_holds_is_emptied(make):
    """Entries of metadata are merged by the server; none can be removed."""
    written = assessment_of(make.feedback(fallback="budget_exhausted"))

    change = change_of(written, make.feedback())

    assert change["metadata"]["ragspan.fallback"] == ""
    assert change_of(written | change, make.feedback()) is None


def test_a_server_that_writes_null_for_a_value_is_understood(make):
    (item,) = make.annotations(make.scored({"faithfulness": MetricFailure(error_type="Timeout", message="m")}))
    written = assessment_of(item) | {"feedback": {"value": None, "error": {"error_code": "Timeout"}}}

    assert change_of(written, item) is None
