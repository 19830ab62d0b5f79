from dataclasses import replace
from types import SimpleNamespace

import pytest

from ragspan import Background, ConfigurationError, RagRecord, RetrievedContext
from ragspan.exceptions import RecordError
from ragspan.records import Generation, Retrieval, SpanAnchor, as_contexts


def make(**changes):
    return RagRecord(**({"question": "q", "contexts": ["c"], "response": "r"} | changes))


def test_a_record_made_by_hand_takes_strings_as_contexts_and_fills_id_and_times():
    record = RagRecord(question="When?", contexts=["At night."], response="At night.")

    assert record.contexts == (RetrievedContext(text="At night."),)
    assert record.record_id
    assert record.record_id != make().record_id
    assert (record.framework, record.name, record.status) == ("python", "answer", "complete")
    assert record.ended_ns == record.started_ns > 0
    assert record.to_record() is record


def test_a_single_string_is_refused_where_contexts_belong():
    with pytest.raises(ConfigurationError, match="not a single string"):
        make(contexts="one passage")


def test_an_unknown_status_is_refused_with_the_statuses_that_are():
    with pytest.raises(ValueError, match="complete, aborted, error, interrupted, not 'done'"):
        make(status="done")


def test_json_gives_back_the_parts_of_a_record():
    part = RetrievedContext(text="c", rank=0, source="a.md", metadata={"page": 3})
    span = SpanAnchor(trace_id=2**127, span_id=2**63, trace_state="vendor=value")
    record = make(
        contexts=[part],
        evidence=["leaf"],
        swallowed_errors=("TimeoutError",),
        run_id="0198c7a1-7b3c-7000-8000-00000000000f",
        retrievals=(Retrieval(name="r", query="q", started_ns=1, ended_ns=2, contexts=(part,), span=span),),
        generations=(Generation(model="m", provider=None, started_ns=1, ended_ns=2, input_tokens=7),),
    )

    assert RagRecord.from_json(record.to_json()) == record


def _search_with(span):
    search = f'{{"name": "r", "query": null, "started_ns": 1, "ended_ns": 2, "span": {span}}}'
    return f'{{"question": null, "contexts": [], "response": null, "retrievals": [{search}]}}'


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "is not a record"),
        ('{"question": 1, "contexts": [], "response": null}', r"\$\.question"),
        ('{"question": null, "contexts": [{"text": 3}], "response": null}', r"\$\.contexts\[0\]\.text"),
        (_search_with('{"trace_id": "a", "span_id": 1}'), r"\$\.retrievals\[0\]\.span\.trace_id"),
    ],
)
def test_text_that_is_no_record_is_refused_with_the_field(text, complaint):
    with pytest.raises(RecordError, match=complaint):
        RagRecord.from_json(text)


def test_the_size_counts_every_text_once():
    text = "x" * 10_000
    passage = RetrievedContext(text=text)
    search = Retrieval(name="r", query="q", started_ns=1, ended_ns=2, contexts=(passage,))

    assert 10_000 < make(contexts=[passage], retrievals=(search,)).size_hint < 15_000


@pytest.mark.parametrize(
    ("passage", "text"),
    [
        ("plain", "plain"),
        (SimpleNamespace(page_content="langchain", id="d1", metadata={"page": 1}), "langchain"),
        ({"text": "a dictionary", "id": "d1"}, "a dictionary"),
        (SimpleNamespace(node=SimpleNamespace(text="llama", id_="n1"), score=0.5), "llama"),
        (SimpleNamespace(text="other"), "other"),
    ],
)
def test_documents_of_frameworks_become_contexts(passage, text):
    assert as_contexts([passage])[0].text == text


def test_background_beyond_the_limit_is_cut_and_the_record_says_so():
    given = [Background(text="a" * 40_000, kind="tool"), Background(text="b" * 40_000, kind="history"), "c"]

    record = RagRecord(question="q", contexts=[], response="r", background=given)

    assert [(one.kind, len(one.text)) for one in record.background] == [("tool", 40_000), ("history", 20_000)]
    assert record.background_truncated
    assert replace(record, response="s").background_truncated
