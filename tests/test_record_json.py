"""What is written of a record, and what is read of one that somebody else wrote, whatever it holds."""

import datetime as dt
import enum
import json
import types
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragspan import RagRecord, RecordError, Reranking, Retrieval, RetrievedContext
from ragspan.record_json import MAX_CONTEXTS, MAX_JSON, MAX_STEPS, plain


def record_with(**parts):
    """The JSON of a record, where the parts are JSON texts."""
    parts = {"question": '"q"', "contexts": "[]", "response": '"r"'} | parts
    return "{" + ",".join(f'"{name}":{text}' for name, text in parts.items()) + "}"


def a_list(entry, number):
    return "[" + ",".join([entry] * number) + "]"


SEARCH = '{"name":"s","query":null,"started_ns":0,"ended_ns":0}'
CALL = '{"model":null,"provider":null,"started_ns":0,"ended_ns":0}'


@pytest.mark.parametrize(
    ("parts", "complaint"),
    [
        ({"response": '"' + "r" * MAX_JSON + '"'}, "bytes of JSON"),
        ({"contexts": a_list('{"text":"a"}', MAX_CONTEXTS + 1)}, "contexts"),
        ({"retrievals": a_list(SEARCH, MAX_STEPS + 1)}, "steps"),
        ({"generations": a_list(CALL, MAX_STEPS + 1)}, "steps"),
        ({"metadata": '{"k":' + "1" * 5_000 + "}"}, "should be JSON text"),
        ({"metadata": '{"k":' + "[" * 200_000 + "]" * 200_000 + "}"}, "should be JSON text"),
    ],
    ids=["bytes", "contexts", "searches", "model calls", "digits", "depth"],
)
@pytest.mark.parametrize("kind", [str, str.encode], ids=["text", "bytes"])
def test_what_is_too_much_is_refused(parts, complaint, kind):
    with pytest.raises(RecordError, match=complaint):
        RagRecord.from_json(kind(record_with(**parts)))


@pytest.mark.parametrize("place", ["evidence", "retrievals"])
def test_contexts_count_wherever_they_are(place):
    contexts = a_list('{"text":"c"}', MAX_CONTEXTS // 2 + 1)
    others = contexts if place == "evidence" else f'[{SEARCH[:-1]},"contexts":{contexts}}}]'

    with pytest.raises(RecordError, match="contexts"):
        RagRecord.from_json(record_with(contexts=contexts, **{place: others}))


@pytest.mark.parametrize("root", ["null", "5", '"text"', "[]", "true", ""])
def test_what_is_no_object_is_no_record(root):
    with pytest.raises(RecordError):
        RagRecord.from_json(root)


@pytest.mark.parametrize(
    "text",
    [
        record_with(status='"SECRET"'),
        record_with(status="\"it's SECRET\\n' - at `$`\""),
        record_with(tags='[{"SECRET": 1}]'),
        record_with(contexts='[{"SECRET": 1}]'),
        record_with(started_ns='"SECRET"'),
        record_with(question="SECRET"),
    ],
)
def test_what_is_refused_is_not_shown(text):
    with pytest.raises(RecordError) as refusal:
        RagRecord.from_json(text)
    assert "SECRET" not in str(refusal.value)


def test_a_score_that_is_too_large_for_a_float_is_none():
    assert RetrievedContext(text="c", score=10**400).score is None
    assert RagRecord.from_json(record_with(contexts='[{"text":"c","score":1e999}]')).contexts[0].score is None


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (2**990 - 1, 2**990 - 1),
        (-(2**990) + 1, -(2**990) + 1),
        (2**990, "int"),
        (10**5_000, "int"),
        ([-(10**5_000)], ["int"]),
        ({10**5_000: 1}, {"int": 1}),
        (float("nan"), "float"),
        ({True: 1, None: 2}, {"True": 1, "NoneType": 2}),
    ],
    ids=lambda value: "",
)
def test_metadata_that_json_cannot_hold_is_replaced_and_the_rest_comes_back(value, read):
    record = RagRecord(question="q", contexts=[], response="r", metadata={"k": value})

    assert RagRecord.from_json(record.to_json()).metadata == {"k": read}


@pytest.mark.parametrize("text", ["\ud800 alone", "\x00", "\u2028 and \U0001f600"])
def test_any_text_comes_back(text):
    context = RetrievedContext(text=text, id=text, metadata={text: text})
    record = RagRecord(question=text, contexts=[context], response=text, tags=(text,))

    assert RagRecord.from_json(record.to_json().encode()) == record


class Colour(enum.Enum):
    RED = 1


class Word(str):
    __slots__ = ()


texts = st.text(alphabet=st.characters(exclude_categories=()), max_size=30)  # lone surrogates as well
scalars = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | texts
odd = (
    st.sampled_from([Colour.RED, Word("w"), object(), b"bytes", {1, 2}, dt.date(2026, 1, 1), uuid.UUID(int=1)])
    | st.dictionaries(texts, scalars, max_size=2).map(types.MappingProxyType)
    | st.dictionaries(st.integers() | st.booleans(), scalars, max_size=2)
)
values = st.recursive(
    scalars | odd, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
)


@given(
    text=texts,
    score=st.none() | st.floats(),
    metadata=st.dictionaries(texts, scalars, max_size=3) | st.dictionaries(texts, values, max_size=3),
    place=st.sampled_from(["metadata", "contexts", "evidence", "retrievals", "given", "reranked"]),
)
def test_the_quick_writer_writes_what_the_slow_one_does_wherever_metadata_is(text, score, metadata, place):
    """The quick one would write dates, sets and bytes, where the slow one writes the name of their type."""
    context = RetrievedContext(text=text, score=score, metadata=metadata)
    times = {"started_ns": 1, "ended_ns": 2}
    held = {
        "metadata": {"metadata": metadata},
        "contexts": {"contexts": (context,)},
        "evidence": {"evidence": (context,)},
        "retrievals": {"retrievals": (Retrieval(name=text, query=text, contexts=(context,), **times),)},
        "given": {"rerankings": (Reranking(name=text, query=None, given=(context,), contexts=(), **times),)},
        "reranked": {"rerankings": (Reranking(name=text, query=None, given=(), contexts=(context,), **times),)},
    }[place]
    record = RagRecord(**{"question": text, "contexts": None, "response": Word(text)} | held)

    assert json.loads(record.to_json()) == json.loads(json.dumps(plain(record)))
