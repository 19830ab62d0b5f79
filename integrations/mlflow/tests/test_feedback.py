import json

import pytest

from ragspan import MetricFailure, NotApplicable, Score, Usage
from ragspan.telemetry.content import ContentPolicy
from ragspan_mlflow.feedback import feedback_of


def all_feedback(given, *, chars=1000, explanations=True, failures=False):
    content = ContentPolicy(explanations=explanations, max_explanation_chars=chars)
    return list(feedback_of(given, given.span, content=content, failures=failures))


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

    (item,) = all_feedback(make.scored({"faithfulness": score}, answer=0xABC, span=0x12))

    assert item.creation() == {
        "assessment_id": item.key,
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
    ("judge", "source_type", "source_id"),
    [
        ("openai:gpt-4o-mini", "LLM_JUDGE", "openai:gpt-4o-mini"),
        ("overlap", "CODE", "overlap"),
        ("hhem", "CODE", "hhem"),
        (None, "CODE", "ragspan"),
    ],
)
def test_the_judge_is_the_source(make, judge, source_type, source_id):
    (item,) = all_feedback(make.scored({"faithfulness": Score(value=1.0, judge=judge)}))

    assert (item.source_type, item.source_id) == (source_type, source_id)


def test_a_metric_that_does_not_apply_is_not_written(make):
    assert all_feedback(make.scored({"faithfulness": NotApplicable(reason="no_contexts")}), failures=True) == []


def test_failures_are_written_only_if_they_are_wanted(make):
    given = make.scored({"faithfulness": MetricFailure(error_type="Timeout", message="of: the user's words")})

    (item,) = all_feedback(given, failures=True)

    assert all_feedback(given) == []
    assert item.creation()["feedback"] == {"error": {"error_code": "Timeout"}}
    assert item.creation()["source"] == {"source_type": "CODE", "source_id": "ragspan"}
    assert "user's words" not in str(item.creation())


def test_an_explanation_is_cut(make):
    given = make.scored({"faithfulness": Score(value=1.0, explanation="x" * 50)})

    assert all_feedback(given, chars=10)[0].rationale == "xxxxxxxxx…"


def test_explanations_can_be_left_out(make):
    given = make.scored({"faithfulness": Score(value=1.0, explanation="It quotes a passage.")})

    assert "quotes" not in str(all_feedback(given, explanations=False)[0].creation())


def test_what_a_database_cannot_hold_is_replaced(make):
    given = make.scored({"faith\0fulness": Score(value=1.0, explanation="a\0b\ud800")}, record="r\0")

    (item,) = all_feedback(given)

    assert (item.name, item.rationale, item.record_id) == ("faith�fulness", "a�b�", "r�")


def test_names_fit_into_mlflows_columns(make):
    (item,) = all_feedback(make.scored({"m" * 300: Score(value=1.0, judge="j" * 300)}))

    assert (len(item.name), len(item.source_id)) == (250, 250)


def test_the_same_score_in_another_process_has_the_same_key(make):
    assert make.feedback(0.9).key == make.feedback(0.3).key == "a-7bae8825e4c65d6ab111c643ddca23b9"
    assert len(make.feedback().key) <= 50  # which is what MLflow's column has


@pytest.mark.parametrize(
    "other", [{"metric": "completeness"}, {"answer": 2}, {"record": "r2"}, {"judge": "overlap"}], ids=str
)
def test_another_metric_trace_record_or_judge_makes_it_another_one(make, other):
    assert make.feedback(**other).key != make.feedback().key


def test_the_span_does_not_make_it_another_one(make):
    """A record that is emitted anew has a new span in the same trace."""
    scores = {"faithfulness": Score(value=0.5)}

    first, second = (all_feedback(make.scored(scores, span=span))[0] for span in (1, 2))

    assert first.key == second.key


def test_feedback_is_known_by_its_record_where_the_server_gave_it_an_id(make):
    item = make.feedback()
    written = item.creation() | {"assessment_id": "a-of-the-server"}
    others = [make.feedback(record="r2").creation(), make.feedback(judge="overlap").creation()]

    assert item.find_in([*others, written]) == written
    assert item.find_in(others) is None


def test_feedback_is_known_by_its_id_where_its_metadata_were_lost(make):
    written = {name: value for name, value in make.feedback().creation().items() if name != "metadata"}

    assert make.feedback().find_in([written]) == written


def test_an_assessment_without_metadata_is_another_ones(make):
    human = {"assessment_id": "a-1", "assessment_name": "faithfulness", "source": {"source_type": "HUMAN"}}

    assert make.feedback().find_in([human, {}]) is None


def test_nothing_has_to_be_changed_in_what_says_the_same(make):
    item = make.feedback(explanation="e")
    written = item.creation()
    written["metadata"] = {**written["metadata"], "somebody": "else's"}

    assert item.change_of(written) is None


@pytest.mark.parametrize("facts", [{"value": 0.3}, {"explanation": "f"}, {"prompt_version": "8"}], ids=str)
def test_what_says_something_else_is_changed(make, facts):
    written = make.feedback(0.9, explanation="e", prompt_version="7").creation()
    wanted = make.feedback(**{"value": 0.9, "explanation": "e", "prompt_version": "7", **facts})

    change = wanted.change_of(written)

    assert change is not None
    assert wanted.change_of(written | change) is None


def test_a_note_that_no_longer_holds_is_emptied(make):
    """Entries of metadata are merged by the server; none can be removed."""
    written = make.feedback(fallback="budget_exhausted").creation()

    change = make.feedback().change_of(written)

    assert change["metadata"]["ragspan.fallback"] == ""
    assert make.feedback().change_of(written | change) is None


def test_a_server_that_writes_null_for_a_value_is_understood(make):
    given = make.scored({"faithfulness": MetricFailure(error_type="Timeout", message="m")})
    (item,) = all_feedback(given, failures=True)
    written = item.creation() | {"feedback": {"value": None, "error": {"error_code": "Timeout"}}}

    assert item.change_of(written) is None


def test_a_long_explanation_counts_as_large(make):
    assert make.feedback(explanation="x" * 900).size - make.feedback().size > 800


@pytest.mark.parametrize("record_id", ["r" * 100_000, "r\ud800\0"])
def test_ids_that_a_caller_made_up_are_bounded_and_well_formed(make, record_id):
    (item,) = all_feedback(make.scored({"faithfulness": Score(value=1.0)}, record=record_id))

    text = json.dumps(item.creation(), ensure_ascii=False)
    assert len(text.encode()) < 2000
    assert "\0" not in text
