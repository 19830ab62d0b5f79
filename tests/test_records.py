from dataclasses import replace
from types import SimpleNamespace

import pytest

from ragspan import Background, RagRecord, RetrievedContext
from ragspan.exceptions import RecordError
from ragspan.messages import ErrorReport, Message, without_texts
from ragspan.records import Generation, Reranking, Retrieval, SpanAnchor, ToolCall, as_contexts


def make(**changes):
    return RagRecord(**({"question": "q", "contexts": ["c"], "response": "r"} | changes))


def test_a_record_made_by_hand_takes_strings_as_contexts_and_fills_id_and_times():
    record = RagRecord(question="When?", contexts=["At night."], response="At night.", contexts_unknown="picture")

    assert (record.contexts, record.contexts_unknown) == ((RetrievedContext(text="At night."),), None)
    assert record.record_id
    assert record.record_id != make().record_id
    assert (record.framework, record.name, record.status) == ("python", "answer", "complete")
    assert record.ended_ns == record.started_ns > 0
    assert record.to_record() is record


LISTED = "contexts are a list or tuple of texts or documents, not"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"contexts": "one passage"}, f"{LISTED} a single string: write [text]"),
        ({"contexts": {"text": "c"}}, f"{LISTED} dict: write list(...)"),
        ({"contexts": [3]}, "a context is a text, or has one under one of page_content, text; this int has none"),
        ({"question": 3}, "question should be a text, not int"),
        ({"response": b"r"}, "response should be a text, not bytes"),
        ({"background": "b"}, "background is a sequence of texts and Backgrounds; of a single text, write [text]"),
        ({"background": [3]}, "background is a sequence of texts and Backgrounds; of a single text, write [text]"),
        ({"status": "done"}, "status is one of complete, aborted, error, interrupted, not 'done'"),
    ],
)
def test_what_a_record_cannot_hold_is_refused(given, message):
    with pytest.raises(ValueError) as refused:
        make(**given)

    assert str(refused.value) == message


def told(error=None, said=None, text=None):
    """A record with a step of each kind, and these texts wherever one may be that only spans show."""
    part = RetrievedContext(text="c", rank=0, source="a.md", metadata={"page": 3})
    span = SpanAnchor(trace_id=2**127, span_id=2**63, trace_state="vendor=value")
    ranked = (RetrievedContext(text=text or "", id="d"),)
    step = {"started_ns": 1, "ended_ns": 2, "error": error}
    return make(
        contexts=[part],
        evidence=["leaf"],
        swallowed_errors=("TimeoutError",),
        run_id="0198c7a1",
        record_id="a",
        started_ns=1,
        error=error,
        tool_calls=(ToolCall(name="t", arguments=text, result=text, **step),),
        retrievals=(Retrieval(name="s", query="q", contexts=(part,), span=span, **step),),
        rerankings=(Reranking(name="r", query=text, given=ranked, contexts=ranked, **step),),
        generations=(
            Generation(model="m", provider=None, input_tokens=7, prompt=said or (), reply=said and said[0], **step),
        ),
    )


def test_json_gives_back_the_parts_of_a_record_and_without_texts_it_has_none_that_only_spans_show():
    whole = told(ErrorReport(type="E", message="why"), (Message(role="user", text="secret"),), "secret")

    assert RagRecord.from_json(whole.to_json()) == whole
    assert without_texts(whole) == without_texts(told()) == told()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "^this JSON is not a record: "),
        ('{"question": 1, "contexts": [], "response": null}', r"\$\.question"),
        ('{"question": null, "contexts": [{"text": 3}], "response": null}', r"\$\.contexts\[0\]\.text"),
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
    ("passage", "context"),
    [
        ("plain", {"text": "plain"}),
        (SimpleNamespace(page_content="a", id="d1", metadata={"page": 1}), {"text": "a", "id": "d1", "metadata": {"page": 1}}),
        ({"content": "a", "doc_id": 7, "rank": 2, "score": 0.5, "file_name": "a.md"}, {"text": "a", "id": "7", "rank": 2, "score": 0.5, "source": "a.md"}),
        ({"text": "a", "rank": -1, "score": float("nan"), "meta": {"k": 1}}, {"text": "a", "metadata": {"k": 1}}),
        ({"text": "a", "rank": True, "score": "high"}, {"text": "a"}),
        (SimpleNamespace(node=SimpleNamespace(text="a", id_="n1"), score=0.5, rank=0), {"text": "a", "id": "n1", "score": 0.5, "rank": 0}),
        (SimpleNamespace(node=SimpleNamespace(text_resource=SimpleNamespace(text="a"))), {"text": "a"}),
        (SimpleNamespace(text="a", source="not of an object"), {"text": "a"}),
        (RetrievedContext(text="a", id="b"), {"text": "a", "id": "b"}),
        *(({name: "a"}, {"text": "a"}) for name in ("page_content", "document", "contents", "passage", "long_text")),
        *(({"text": "a", name: "b"}, {"text": "a", "id": "b"}) for name in ("id_", "node_id", "document_id", "chunk_id")),
        *(({"text": "a", name: "b"}, {"text": "a", "source": "b"}) for name in ("source", "file_path", "url", "title")),
    ],
)  # fmt: skip
def test_documents_of_frameworks_become_contexts(passage, context):
    assert as_contexts([passage]) == (RetrievedContext(**context),)


def test_background_beyond_the_limit_is_cut_and_the_record_says_so():
    given = [Background(text="a" * 40_000, kind="tool"), Background(text="b" * 40_000, kind="history"), "c"]

    record = RagRecord(question="q", contexts=[], response="r", background=given)

    assert [(one.kind, len(one.text)) for one in record.background] == [("tool", 40_000), ("history", 20_000)]
    assert record.background_truncated
    assert replace(record, response="s").background_truncated
