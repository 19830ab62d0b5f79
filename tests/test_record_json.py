"""What is written of a record, and what it costs to read one that somebody else wrote, whatever it holds."""

import datetime as dt
import enum
import json
import time
import tracemalloc
import types
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragspan import Background, RagRecord, RetrievedContext
from ragspan.exceptions import RecordError
from ragspan.record_json import MAX_CONTEXTS, MAX_DEPTH, MAX_JSON, MAX_STEPS, MAX_VALUES, plain, plain_entries
from ragspan.records import Generation, Reranking, Retrieval

ROOM = MAX_JSON - 200


def record_with(**parts):
    """The JSON of a record, where the parts are JSON texts."""
    parts = {"question": '"q"', "contexts": "[]", "response": '"r"'} | parts
    return "{" + ",".join(f'"{name}":{text}' for name, text in parts.items()) + "}"


def a_list(entry, number):
    return "[" + ",".join([entry] * number) + "]"


SEARCH = '{"name":"s","query":null,"started_ns":0,"ended_ns":0}'
CALL = '{"model":null,"provider":null,"started_ns":0,"ended_ns":0}'
TOO_MUCH = {
    "lists": lambda: record_with(metadata=f'{{"k":{a_list("[]", ROOM // 3)}}}'),
    "objects": lambda: record_with(metadata=f'{{"k":{a_list("{}", ROOM // 3)}}}'),
    "numbers": lambda: record_with(metadata=f'{{"k":{a_list("1.5", ROOM // 4)}}}'),
    "texts": lambda: record_with(tags=a_list('"a"', ROOM // 4)),
    "empty texts": lambda: record_with(tags=a_list('""', ROOM // 3)),
    "keys": lambda: record_with(metadata="{" + ",".join(f'"{number:x}":0' for number in range(ROOM // 10)) + "}"),
    "contexts": lambda: record_with(contexts=a_list('{"text":"a"}', ROOM // 13)),
    "fields of later versions": lambda: record_with(later=a_list("[]", ROOM // 3)),
    "brackets": lambda: "[" * ROOM,
    "commas and quotation marks": lambda: record_with(metadata='{"k":[' + '"\\"",' * (ROOM // 5) + "0]}"),
    "an open text": lambda: '{"question":"' + '\\",' * (ROOM // 3),
    "a long integer": lambda: record_with(metadata='{"k":' + "1" * ROOM + "}"),
    "a long decimal": lambda: record_with(metadata='{"k":0.' + "1" * ROOM + "}"),
    "long integers": lambda: record_with(metadata=f'{{"k":{a_list("1" * 4_000, ROOM // 4_001)}}}'),
    "bytes": lambda: record_with(response='"' + "r" * MAX_JSON + '"'),
    "depth": lambda: record_with(metadata='{"k":' + "[" * 900 + "]" * 900 + "}"),
    "more contexts than allowed": lambda: record_with(contexts=a_list('{"text":"a"}', MAX_CONTEXTS + 1)),
    "more searches than allowed": lambda: record_with(retrievals=a_list(SEARCH, MAX_STEPS + 1)),
    "more model calls than allowed": lambda: record_with(generations=a_list(CALL, MAX_STEPS + 1)),
}
MUCH = {
    "values": lambda: record_with(metadata=f'{{"k":{a_list("[]", MAX_VALUES // 2 - 10)}}}'),
    "contexts": lambda: record_with(contexts=a_list('{"text":"a"}', MAX_CONTEXTS)),
    "steps": lambda: record_with(retrievals=a_list(SEARCH, MAX_STEPS // 2), generations=a_list(CALL, MAX_STEPS // 2)),
    "keys": lambda: record_with(metadata="{" + ",".join(f'"{number:x}":0' for number in range(MAX_VALUES - 10)) + "}"),
    "decimals": lambda: record_with(metadata=f'{{"k":{a_list("0." + "1" * 290, ROOM // 293)}}}'),
    "a text": lambda: record_with(response='"' + "r" * ROOM + '"'),
    "a text of commas": lambda: record_with(response='"' + "," * ROOM + '"'),
    "a text of JSON": lambda: record_with(response=json.dumps('[{"a\\\\": [1, 2]}, ' * (ROOM // 24))),
    "a text of backslashes": lambda: record_with(response='"' + "\\\\" * (ROOM // 2) + '"'),
    "spaces": lambda: record_with(response=" " * ROOM + "null"),
}


@pytest.mark.parametrize("make", TOO_MUCH.values(), ids=TOO_MUCH)
def test_what_is_too_much_is_refused_at_little_cost(make):
    data = make().encode()
    tracemalloc.start()
    try:
        began = time.process_time()
        with pytest.raises(RecordError):
            RagRecord.from_json(data)
        seconds = time.process_time() - began
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert seconds < 2.0  # a tenth of it where nothing traces the memory and nobody else is at work
    assert peak < 80 * 1024 * 1024


@pytest.mark.parametrize("make", MUCH.values(), ids=MUCH)
def test_as_much_as_is_allowed_is_read_at_little_cost(make):
    data = make().encode()
    began = time.process_time()
    record = RagRecord.from_json(data)

    assert time.process_time() - began < 1.0
    assert record.question == "q"


def test_the_limits_are_for_texts_as_for_bytes():
    for make in (TOO_MUCH["lists"], TOO_MUCH["bytes"]):
        with pytest.raises(RecordError, match="at most, but this one has more"):
            RagRecord.from_json(make())


@pytest.mark.parametrize("place", ["evidence", "retrievals"])
def test_contexts_count_wherever_they_are(place):
    contexts = a_list('{"text":"c"}', MAX_CONTEXTS // 2 + 1)
    others = contexts if place == "evidence" else f'[{SEARCH[:-1]},"contexts":{contexts}}}]'

    with pytest.raises(RecordError, match="contexts"):
        RagRecord.from_json(record_with(contexts=contexts, **{place: others}))


def test_a_record_of_many_searches_with_metadata_is_read():
    """An agent's: two hundred searches with ten documents each, as `to_json` writes them."""
    documents = tuple(
        RetrievedContext(
            text=f"Passage {number}, which is short.", id=str(number), rank=number, metadata={"page": number}
        )
        for number in range(10)
    )
    searches = (Retrieval(name="s", query="q", started_ns=1, ended_ns=2, contexts=documents),) * 200
    calls = (Generation(model="m", provider="p", started_ns=1, ended_ns=2),) * 200
    record = RagRecord(question="q", contexts=documents, response="r", retrievals=searches, generations=calls)

    assert RagRecord.from_json(record.to_json()) == record


@pytest.mark.parametrize("depth", [MAX_DEPTH, MAX_DEPTH + 1])
def test_the_record_counts_where_things_are_inside_each_other(depth):
    text = record_with(metadata='{"k":' + "[" * (depth - 2) + "]" * (depth - 2) + "}")
    if depth <= MAX_DEPTH:
        assert RagRecord.from_json(text).metadata["k"]
    else:
        with pytest.raises(RecordError, match="inside each other"):
            RagRecord.from_json(text)


@pytest.mark.parametrize("root", ["null", "5", '"text"', "[]", "true", ""])
def test_what_is_no_object_is_no_record(root):
    with pytest.raises(RecordError):
        RagRecord.from_json(root)


@pytest.mark.parametrize(
    "text",
    [
        record_with(status='["SECRET"]'),
        record_with(tags='[{"SECRET": 1}]'),
        record_with(contexts='[{"SECRET": 1}]'),
        record_with(started_ns='"SECRET"'),
        record_with(question="SECRET"),
        record_with(metadata='{"SECRET": NaN}'),
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


def test_words_that_only_a_newer_release_knows_do_not_spoil_a_record():
    known = RagRecord(question="Q", contexts=None, response="R", background=[Background(text="B", kind="tool")])
    newer = json.loads(known.to_json())
    newer |= {"status": "postponed", "contexts_unknown": "encrypted", "kind": "a field that this release does not have"}
    newer["background"] += [{"text": "C", "kind": "calendar"}]

    record = RagRecord.from_json(json.dumps(newer))

    assert (record.status, record.contexts_unknown) == ("aborted", None)  # not scored as if it were a whole answer
    assert [(one.text, one.kind) for one in record.background] == [("B", "tool"), ("C", "other")]


@pytest.mark.parametrize("status", [7, None, ["complete"]])
def test_a_status_that_is_no_word_is_refused(status):
    with pytest.raises(RecordError, match=r"\$.status"):
        RagRecord.from_json(json.dumps({**json.loads(record_with()), "status": status}))


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


def test_of_a_frameworks_metadata_plain_values_are_kept_and_made_plain():
    """A parser's text refers to its whole page, and may not pickle."""

    class OwnText(str):
        __slots__ = ("page",)

        __str__ = __repr__ = lambda _: "another"

    class OwnFloat(float):
        pass

    given = {OwnText("title"): OwnText("Pumps"), "score": OwnFloat(0.5), "page": 3, "is_new": True, "none": None}
    entries = plain_entries({**given, 1: "number", "vector": [0.1]})

    assert entries == {"title": "Pumps", "score": 0.5, "page": 3, "is_new": True, "none": None}
    assert {type(each) for each in (*entries, *entries.values())} == {str, float, int, bool, type(None)}
