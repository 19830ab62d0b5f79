"""The comparison with people's judgements tells copied answers from invented ones, of made-up judgements."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.slow

SOURCES = 12


def row(source, model, response, *, supported, faithfulness, completeness=None, recorded=None, contexts=True):
    context = f"Item {source} costs {source * 7 + 3} euros. It is sold in Lisbon every Monday."
    return {
        "id": f"made-up/{source}/{model}",
        "source_id": str(source),
        "question": f"What does item {source} cost, and where is it sold?",
        "contexts": [context] if contexts else [],
        "response": response,
        "supported": supported,
        "faithfulness": faithfulness,
        "completeness": completeness,
        "recorded": recorded or {},
    }


def rated(mean, *votes):
    return {"mean": mean, "votes": list(votes)}


def made_up_rows():
    """Of each source an answer that the passage holds and one that it does not; and a few that are special."""
    beside = {"coin": 0.5, "human_fluency": 4, "answerability": "answerable"}
    for source in range(SOURCES):
        price = source * 7 + 3
        copied = f"Item {source} costs {price} euros and is sold in Lisbon every Monday."
        invented = f"Nobody at Globex would sell the {price * 3 + 1} turquoise umbrellas outside Reykjavik."
        good = {"faithfulness": rated(4, 4, 4, 4 - source % 2), "completeness": rated(4, 4, 4, 4)}
        bad = {"faithfulness": rated(1.5, 1, 2, 1 + source % 2), "completeness": rated(2, 2, 2, 2)}
        yield row(source, "copying", copied, supported=True, recorded={"oracle": 1.0} | beside, **good)
        yield row(source, "inventing", invented, supported=False, recorded={"oracle": 0.0} | beside, **bad)
    silent = {"faithfulness": rated(1, 1, 1), "completeness": rated(1, 1, 1)}
    yield row(0, "silent", "", supported=False, recorded={"oracle": 0.0, "coin": 0.5}, **silent)
    yield row(1, "chatting", "You are welcome.", supported=True, faithfulness=rated(None), contexts=False)


@pytest.fixture(scope="module")
def judgements(judgements_of):
    """A folder with one rated set and one of which people only marked spans."""
    rows = list(made_up_rows())
    marked = [one | {"faithfulness": rated(None), "completeness": None, "recorded": {}} for one in rows]
    return judgements_of(rated=rows, marked=marked)


@pytest.fixture(scope="module")
def measured(judgements, figures_of):
    """The figures of a quick run with the embedded judge."""
    return figures_of("agreement.py", judgements)


def of_set(measured, name):
    return next(one for one in measured["sets"] if one["name"] == name)


def scorers(report, label):
    return {one["scorer"]: one for one in report["agreements"] if one["label"] == label}


def test_answers_without_contexts_are_left_out_and_those_without_a_score_count_zero(measured):
    report = of_set(measured, "rated")

    assert (report["answers"], report["sources"]) == (2 * SOURCES + 1, SOURCES)
    assert scorers(report, "supported")["context_adherence"]["scored"] == 2 * SOURCES
    assert report["reasons"]["context_adherence"] == {"no_response": 1}
    assert report["auroc_without_empty"] == 1.0


def test_copied_answers_are_told_from_invented_ones_and_the_plot_counts_every_answer(measured):
    for report in measured["sets"]:
        best = report["agreements"][0]
        assert (best["kind"], best["lead"]) == ("judge", None)
        assert best["auroc"] == {"value": 1.0, "low": 1.0, "high": 1.0}
        assert report["main"] == "context_adherence"
        assert sum(one["answers"] for one in report["calibration"]) == report["answers"]
    assert measured["means"]["auroc"]["value"] == 1.0


def test_recorded_judges_shortness_and_annotators_stand_beside_the_judge(measured):
    beside = scorers(of_set(measured, "rated"), "supported")

    assert beside.keys() >= {"oracle", "coin", "shortness alone"}
    assert not beside.keys() & {"human_fluency", "answerability"}
    assert [beside[name]["auroc"]["value"] for name in ("oracle", "coin")] == [1.0, 0.5]
    assert beside["coin"]["lead"]["value"] == 0.5
    annotator = beside["one annotator against the others"]
    assert annotator["answers"] == beside["context_adherence against the same"]["answers"] == 6 * SOURCES + 2
    assert annotator["auroc"]["value"] == 1.0
    assert "one annotator against the others" not in scorers(of_set(measured, "marked"), "supported")


def test_completeness_is_compared_only_where_people_rated_it(measured):
    assert scorers(of_set(measured, "rated"), "complete")["completeness"]["auroc"]["value"] > 0.9
    assert scorers(of_set(measured, "marked"), "complete") == {}
    assert scorers(of_set(measured, "marked"), "supported")["context_adherence"]["spearman"] is None


def test_fewer_rows_are_whole_sources(judgements, figures_of):
    for report in figures_of("agreement.py", judgements, "--rows", 5, "--resamples", 10, quick=False)["sets"]:
        assert 5 <= report["answers"] <= 7
        assert report["sources"] in {2, 3}


def test_instructions_of_a_template_change_no_figure_of_an_answer_that_a_program_gave(measured, judgements, figures_of):
    captured = figures_of("agreement.py", judgements, "--captured", "template", "--set", "rated")

    assert [one["name"] for one in captured["sets"]] == ["rated"]
    assert of_set(captured, "rated") == of_set(measured, "rated")


def test_a_model_behind_any_compatible_endpoint_can_judge(judgements, figures_of, fake_openai):
    def answer(request):
        asked = request["messages"][-1]["content"]
        verdict = "not_grounded" if "Globex" in asked else "grounded"
        reply = {"answer": {"grounding": {"reasoning": "Read.", "verdict": verdict}}}
        return fake_openai.says(*[json.dumps(reply)] * request.get("n", 1))

    fake_openai.answer = answer
    arguments = ("--judge", "openai:made-up", "--base-url", fake_openai.base_url, "--metric", "context_adherence")

    report = figures_of("agreement.py", judgements, *arguments, "--resamples", 10, quick=False)

    assert report["usage"]["requests"] == len(fake_openai.requests) == 2 * 2 * SOURCES
    agreements = of_set(report, "rated")["agreements"]
    assert [one["scorer"] for one in agreements if one["kind"] == "judge"] == ["context_adherence"]
    assert agreements[0]["balanced_accuracy"]["value"] == 1.0
    assert report["fit"] is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--judge", "oracle"], "not 'oracle'"),
        (["--judge", "openai:made-up"], "there is no key for OpenAI"),
        ([], "ends in .jsonl.gz"),
    ],
)
def test_what_cannot_be_measured_is_refused_with_the_reason(judgements, run_benchmark, tmp_path, arguments, said):
    folder = judgements if arguments else tmp_path
    done = run_benchmark("agreement.py", folder, *arguments, is_right=False, env={})

    assert done.returncode == 1
    assert said in done.stderr
