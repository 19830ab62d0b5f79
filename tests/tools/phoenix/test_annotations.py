"""What is written, as a Phoenix gets it."""

from __future__ import annotations

import pytest

from ragspan.judges.judge_protocols import ContextVerdict
from ragspan.outcomes import Score
from ragspan.records import RagRecord, Retrieval, RetrievedContext, SpanAnchor
from ragspan.tools.phoenix import PhoenixEmitter

ANSWER = SpanAnchor(trace_id=0xA1, span_id=0xB2)


@pytest.fixture
def rows_of():
    def rows(scored, **options):
        emitter = PhoenixEmitter(base_url="http://localhost", **{"explanations": True, **options})
        return [emitter.row_of(item) for item in emitter.items_of(scored, scored.span)]

    return rows


@pytest.mark.parametrize(
    ("score", "kind", "result"),
    [
        (
            Score(value=0.5, threshold=0.8, explanation="why", judge="gpt-4o-mini"),
            "LLM",
            {"score": 0.5, "label": "fail", "explanation": "why"},
        ),
        (Score(value=1.0), "CODE", {"score": 1.0}),
    ],
    ids=["all", "nothing but the value"],
)
def test_a_score_is_an_annotation_of_the_answers_span(rows_of, make_scored, score, kind, result):
    scored = make_scored({"faithfulness": score})
    (item,) = PhoenixEmitter(base_url="http://localhost").items_of(scored, scored.span)

    assert rows_of(scored) == [
        {
            "span_id": "00000000000000b2",
            "name": "faithfulness",
            "annotator_kind": kind,
            "identifier": "ragspan:record-1",
            "result": result,
            "metadata": item.metadata,
        }
    ]


def test_the_identifier_is_the_records_and_not_the_judges(rows_of, make_scored):
    """A second scoring by another judge replaces the first; two answers under one span do not replace each other."""
    outcomes = [{"faithfulness": Score(value=1.0, judge=judge)} for judge in ("overlap", "gpt-4o-mini")]
    identifiers = [rows_of(make_scored(each), identifier="mine")[0]["identifier"] for each in outcomes]
    (other,) = rows_of(make_scored(record_id="record-2"))

    assert identifiers == ["mine:record-1"] * 2
    assert other["identifier"] == "ragspan:record-2"


def test_verdicts_on_passages_go_to_the_documents_where_the_search_has_them(rows_of, make_scored, utilization):
    _, first, second = rows_of(make_scored({"context_utilization": utilization}))

    assert first == {
        "span_id": "00000000000000c3",
        "name": "context_utilization",
        "annotator_kind": "CODE",
        "identifier": "",  # Phoenix refuses any other for documents
        "document_position": 2,
        "result": {"score": 1.0, "label": "useful", "explanation": "cited"},
        "metadata": {"record_id": "record-1", "judge": "overlap"},
    }
    assert (second["document_position"], second["result"]) == (1, {"score": 0.0, "label": "not useful"})


@pytest.mark.parametrize(
    ("options", "spans"),
    [
        ({"documents": False}, (SpanAnchor(trace_id=1, span_id=2),)),
        ({}, ()),
        ({}, (None,)),
        ({}, (SpanAnchor(trace_id=1, span_id=2, trace_flags=0),)),
    ],
    ids=["not wanted", "no spans", "span unknown", "span not sampled"],
)
def test_without_a_span_for_the_search_nothing_is_said_of_its_documents(
    rows_of, make_scored, utilization, options, spans
):
    scored = make_scored({"context_utilization": utilization}, retrieval_spans=spans)

    assert len(rows_of(scored, **options)) == 1


def passage(text, id=None, rank=None):  # noqa: A002 - as the field is called
    return RetrievedContext(text=text, id=id, rank=rank)


@pytest.mark.parametrize(
    ("found", "context", "places"),
    [
        pytest.param([[passage("a"), passage("b")]], passage("b", rank=1), [(0, 1)], id="by its rank"),
        pytest.param([[passage("a"), passage("b")]], passage("b"), [(0, 1)], id="by its text"),
        pytest.param([[passage("long", id="x")]], passage("short", id="x"), [(0, 0)], id="compressed: by its id"),
        pytest.param([[passage("a")], [passage("b"), passage("a")]], passage("a"), [(0, 0), (1, 1)], id="found twice"),
        pytest.param([[passage("a")]], passage("elsewhere"), [], id="from elsewhere"),
    ],
)
def test_a_passage_is_found_in_the_searches_that_brought_it(rows_of, make_scored, found, context, places):
    searches = tuple(
        Retrieval(name="s", query="q", started_ns=1, ended_ns=2, contexts=tuple(passages)) for passages in found
    )
    record = RagRecord(question="q", contexts=[context], response="r", retrievals=searches)
    spans = tuple(SpanAnchor(trace_id=1, span_id=number + 1) for number in range(len(searches)))
    score = Score(value=1.0, evidence=(ContextVerdict(index=0, useful=True),))

    _, *documents = rows_of(make_scored({"m": score}, record=record, retrieval_spans=spans))

    assert [(int(row["span_id"], 16) - 1, row["document_position"]) for row in documents] == places
