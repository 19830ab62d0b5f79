"""The comparison with people's judgements: its figures are right, and the program tells them of made-up judgements."""

from __future__ import annotations

import dataclasses
import gzip
import itertools
import json
import math

import pytest

from ragspan import RagRecord
from ragspan.metrics.agreement import Estimate

SOURCES = 12
COPIED = "The oldest bakery of Lisbon sells round loaves of dark bread every Monday."
INVENTED = "Nobody at Globex would ever buy 700 turquoise umbrellas in Reykjavik."


def test_bins_hold_both_ends_of_the_scale_and_weigh_both_labels_alike(part):
    bins = part("agreeing.calibration").bins_of([0.0, 0.05, 1.0, 0.95, 0.91], [False, True, True, True, False])

    assert [(one.low, one.answers) for one in bins] == [(0.0, 2), (0.9, 3)]
    assert bins[0].share == pytest.approx((1 / 3) / (1 / 3 + 1 / 2))
    assert bins[1].share == pytest.approx((2 / 3) / (2 / 3 + 1 / 2))


def test_the_fit_finds_the_logistic_curve_that_the_labels_follow(part):
    slope, middle = 4.0, 0.3
    points = []
    for value in (0.0, 0.2, 0.4, 0.6, 0.8):
        share = 1 / (1 + math.exp(-slope * (value - middle)))
        points += [(value, 1.0, share), (value, 0.0, 1 - share)]

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


def judgements_of(part, *labels, held_out):
    """Copied answers first and invented ones after them, in halves, with these labels."""
    judgement = part("agreeing.judgements").Judgement
    sources = (str(number) for number in itertools.count())
    texts = [COPIED] * (len(labels) // 2) + [INVENTED] * (len(labels) // 2)
    made = []
    for text, label in zip(texts, labels, strict=True):
        one = judgement(
            record=RagRecord(question="What is sold?", contexts=[COPIED], response=text),
            source="",
            supported=label,
            faithfulness=None,
            completeness=None,
            recorded={},
        )
        candidates = (dataclasses.replace(one, source=source) for source in sources)
        made.append(next(candidate for candidate in candidates if candidate.held_out == held_out))
    return part("agreeing.judgements").JudgementSet(name="made up", judgements=tuple(made))


def test_held_out_sources_have_no_part_in_the_fit(part):
    fitted = part("agreeing.calibration").fitted
    seen = judgements_of(part, True, True, False, True, False, False, held_out=False)
    unseen = judgements_of(part, False, False, True, True, held_out=True)

    slope, middle = fitted([seen])

    assert slope > 0
    assert 0 < middle < 1
    assert fitted([seen, unseen]) == (slope, middle)


@pytest.mark.parametrize("labels", [(True, True, False, False), (False, False, True, True), (True, True, True, True)])
def test_labels_that_a_score_tells_apart_determine_no_curve(part, labels):
    assert part("agreeing.calibration").fitted([judgements_of(part, *labels, held_out=False)]) is None


def row(source, model, **values):
    return {
        "id": f"made-up/{source}/{model}",
        "source_id": str(source),
        "question": f"What does item {source} cost, and where is it sold?",
        "contexts": [f"Item {source} costs {source * 7 + 3} euros. It is sold in Lisbon every Monday."],
        "faithfulness": {"mean": None, "votes": []},
        "completeness": None,
        "recorded": {},
        **values,
    }


def rated(mean, votes):
    return {"mean": mean, "votes": votes}


def made_up_rows():
    """Of each source an answer that the passage holds and one that it does not; and a few that are special."""
    for source in range(SOURCES):
        price = source * 7 + 3
        yield row(
            source,
            "copying",
            response=f"Item {source} costs {price} euros and is sold in Lisbon every Monday.",
            supported=True,
            faithfulness=rated(4, [4, 4, 4 - source % 2]),
            completeness=rated(4, [4, 4, 4]),
            recorded={"oracle": 1.0, "coin": 0.5, "human_fluency": 4, "answerability": "answerable"},
        )
        yield row(
            source,
            "inventing",
            response=f"Nobody at Globex would sell the {price * 3 + 1} turquoise umbrellas outside Reykjavik.",
            supported=False,
            faithfulness=rated(1.5, [1, 2, 1 + source % 2]),
            completeness=rated(2, [2, 2, 2]),
            recorded={"oracle": 0.0, "coin": 0.5, "human_fluency": 4, "answerability": "answerable"},
        )
    yield row(0, "silent", response="", supported=False, faithfulness=rated(1, [1, 1]), completeness=rated(1, [1, 1]),
              recorded={"oracle": 0.0, "coin": 0.5})  # fmt: skip
    yield row(1, "chatting", contexts=[], response="You are welcome.", supported=True)


@pytest.fixture(scope="module")
def judgements(tmp_path_factory):
    """A folder with one rated set and one of which people only marked spans."""
    folder = tmp_path_factory.mktemp("judgements")
    rows = list(made_up_rows())
    marked = [one | {"faithfulness": rated(None, []), "completeness": None, "recorded": {}} for one in rows]
    for name, content in (("rated", rows), ("marked", marked)):
        lines = "".join(json.dumps(one) + "\n" for one in content)
        (folder / f"{name}.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    return folder


@pytest.fixture(scope="module")
def measured(judgements, figures_of):
    """The figures of a quick run with the overlap judge."""
    return figures_of("agreement.py", judgements)


def of_set(measured, name):
    return next(one for one in measured["sets"] if one["name"] == name)


def scorers(report, label):
    return {one["scorer"]: one for one in report["agreements"] if one["label"] == label}


@pytest.mark.slow
def test_answers_without_contexts_are_left_out_and_those_without_a_score_count_zero(measured):
    report = of_set(measured, "rated")

    assert (report["answers"], report["sources"]) == (2 * SOURCES + 1, SOURCES)
    assert scorers(report, "supported")["context_adherence"]["scored"] == 2 * SOURCES
    assert report["reasons"]["context_adherence"] == {"no_response": 1}
    assert report["auroc_without_empty"] == 1.0


@pytest.mark.slow
def test_copied_answers_are_told_from_invented_ones(measured):
    for report in measured["sets"]:
        best = report["agreements"][0]

        assert best["kind"] == "judge"
        assert best["auroc"] == {"value": 1.0, "low": 1.0, "high": 1.0}
        assert best["lead"] is None
    assert measured["means"]["auroc"]["value"] == 1.0


@pytest.mark.slow
def test_recorded_judges_and_shortness_stand_beside_the_judge(measured):
    beside = scorers(of_set(measured, "rated"), "supported")

    assert beside.keys() >= {"oracle", "coin", "shortness alone"}
    assert not beside.keys() & {"human_fluency", "answerability"}
    assert beside["oracle"]["auroc"]["value"] == 1.0
    assert beside["coin"]["auroc"]["value"] == 0.5
    assert beside["coin"]["lead"]["value"] == 0.5


@pytest.mark.slow
def test_annotators_are_held_against_each_other_where_several_rated(measured):
    beside = scorers(of_set(measured, "rated"), "supported")

    annotator = beside["one annotator against the others"]
    assert annotator["answers"] == beside["context_adherence against the same"]["answers"] == 6 * SOURCES + 2
    assert annotator["auroc"]["value"] == 1.0
    assert "one annotator against the others" not in scorers(of_set(measured, "marked"), "supported")


@pytest.mark.slow
def test_completeness_is_compared_only_where_people_rated_it(measured):
    assert scorers(of_set(measured, "rated"), "complete")["completeness"]["auroc"]["value"] > 0.9
    assert scorers(of_set(measured, "marked"), "complete") == {}
    assert scorers(of_set(measured, "marked"), "supported")["context_adherence"]["spearman"] is None


@pytest.mark.slow
def test_the_plot_counts_every_answer(measured):
    for report in measured["sets"]:
        assert report["main"] == "context_adherence"
        assert sum(one["answers"] for one in report["calibration"]) == report["answers"]


@pytest.mark.slow
def test_fewer_rows_are_whole_sources(judgements, figures_of):
    for report in figures_of("agreement.py", judgements, "--rows", 5, "--resamples", 10, quick=False)["sets"]:
        assert 5 <= report["answers"] <= 7
        assert report["sources"] in {2, 3}


@pytest.mark.slow
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
    assert [one["scorer"] for one in of_set(report, "rated")["agreements"] if one["kind"] == "judge"] == [
        "context_adherence"
    ]
    assert of_set(report, "rated")["agreements"][0]["balanced_accuracy"]["value"] == 1.0
    assert report["fit"] is None


@pytest.mark.slow
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
