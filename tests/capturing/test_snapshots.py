"""Payloads as they were when they passed by."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import tracemalloc
import uuid
from collections import deque

import numpy as np
import pytest

from ragspan.capturing.log import RequestLog
from ragspan.safe_copy import CUT, LONG_TEXT, Hidden, ObjectFields, Opaque, Snapshots


class Page:
    """A framework's document."""

    def __init__(self, text):
        self.text = text


def read_page(copying, page, _):
    return copying.kept.setdefault(id(page), (page, ("page", page.text)))[1]


@dataclasses.dataclass
class State:
    question: str
    pages: list


class Colour(enum.Enum):
    RED = "red"


@pytest.fixture
def log():
    return RequestLog()


@pytest.fixture
def take(log):
    snapshots = Snapshots({Page: read_page})
    return lambda value, **options: snapshots.take(value, log, **options)


PLAIN = [
    ("text", "text"),
    (None, None),
    (True, True),
    (2.5, 2.5),
    (10**5000, CUT),
    (10**400, CUT),
    (np.float32(0.5), 0.5),
    (np.int64(3), 3.0),
    (Colour.RED, "red"),
    (dt.date(2026, 1, 2), "2026-01-02"),
    (decimal.Decimal("1.50"), "1.50"),
    (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    ({"a": ["b", {"c": 1}]}, {"a": ["b", {"c": 1}]}),
    ((1, "a"), [1, "a"]),
    (deque(["a"]), ["a"]),
    (frozenset({"a"}), ["a"]),
]


@pytest.mark.parametrize(("value", "snapshot"), PLAIN, ids=lambda value: type(value).__name__)
def test_data_are_copied(take, value, snapshot):
    assert take(value) == snapshot


def test_later_changes_are_not_seen_and_texts_are_shared(take):
    text = "a text " * 100
    payload = {"messages": [text]}
    snapshot = take(payload)
    payload["messages"].append("more")
    payload["other"] = 1

    assert snapshot == {"messages": [text]}
    assert snapshot["messages"][0] is text


def test_the_log_knows_every_text_once(take, log):
    text = "a text " * 100
    take({"a": text, "b": [text, State(question=text, pages=[])]})

    assert list(log.texts.values()) == [text]


def test_an_object_is_known_by_its_fields(take):
    snapshot = take(State(question="When?", pages=[]))

    assert isinstance(snapshot, ObjectFields)
    assert snapshot == {"question": "When?", "pages": []}


def test_an_iterator_is_left_alone_and_the_same_one_is_known_again(take):
    rows = iter([1, 2])
    first, second = take(rows), take(rows)

    assert isinstance(first, Opaque)
    assert first.identity == second.identity != 0
    assert list(rows) == [1, 2]


def test_a_document_is_read_once_and_kept(take, log):
    page = Page("before")
    first = take([page])
    page.text = "after"

    assert take({"page": page})["page"] is first[0]
    assert first == [("page", "before")]
    assert log.kept[id(page)] == (page, ("page", "before"))


def test_fields_whose_names_are_no_texts_are_hidden(take):
    snapshot = take({"a": 1, 2: Page("text")})

    assert snapshot["a"] == 1
    assert isinstance(snapshot[""], Hidden)
    assert snapshot[""].inside == [("page", "text")]


# Bounds


def test_of_a_long_list_the_end_is_copied_and_of_many_documents_much_more(take):
    assert take(list(range(1000))) == [CUT, *range(800, 1000)]
    assert len(take([Page(str(number)) for number in range(1500)])) == 1500
    assert len(take([(Page(str(number)), 0.5) for number in range(1500)])) == 1500


def test_a_payload_that_holds_itself_or_never_ends_is_cut(take):
    circle = {}
    circle["a"] = circle["b"] = circle
    deep = "bottom"
    for _ in range(3000):
        deep = [deep]

    snapshot, levels = take(deep), 0
    while snapshot is not CUT:
        (snapshot,) = snapshot
        levels += 1

    assert 10 < levels < 100
    assert repr(take(circle)).count("{") < 2000


def test_of_a_wide_dictionary_the_first_fields_are_copied(take):
    snapshot = take({str(number): number for number in range(500)})

    assert len(snapshot) == 201
    assert snapshot["…"] is CUT


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("kind", [list, tuple, deque, set, frozenset, dict.fromkeys], ids=lambda kind: kind.__name__)
def test_very_many_items_are_not_copied_to_be_left_out(take, kind, whole):
    many = kind(range(300_000))
    tracemalloc.start()
    snapshot = take(many, whole=whole)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert most < 1_000_000
    if whole and kind in {list, tuple}:
        assert snapshot == [CUT, *range(299_800, 300_000)]


def test_of_a_step_long_texts_and_dull_lists_are_left_out(take):
    long = "a text " * 10_000
    snapshot = take({"text": long, "numbers": list(range(100)), "pages": [Page(long)]}, whole=False)

    assert snapshot["text"] is LONG_TEXT
    assert snapshot["numbers"] == [0, 1, 2, 3]
    assert len(snapshot["pages"]) == 1


def refuse(*_):
    raise RuntimeError("a method of the program's")


REFUSING = dict.fromkeys(
    ("__bool__", "__contains__", "__eq__", "__getitem__", "__hash__", "__int__", "__iter__", "__len__", "__str__"),
    refuse,
)
OF_CLASSES_OF_THE_PROGRAMS = [(str, "a"), (int, 3), (list, ["a"]), (tuple, ["a"]), (deque, ["a"]), (dict, {"a": 1})]


@pytest.mark.parametrize(
    ("kind", "snapshot"), OF_CLASSES_OF_THE_PROGRAMS, ids=lambda value: getattr(value, "__name__", "")
)
def test_of_a_subclass_no_method_is_called_and_plain_data_are_kept(take, kind, snapshot):
    taken = take([type("Own", (kind,), REFUSING)(snapshot)])

    assert taken == [snapshot]
    assert type(taken[0]) is type(snapshot)


@pytest.mark.parametrize("value", [np.complex128(1 + 2j), np.bytes_(b"12")])
def test_what_numpy_has_that_is_no_number_is_not_made_one(take, value):
    assert isinstance(take(value), Opaque)


def test_a_value_that_cannot_be_read_costs_the_rest_nothing(take):
    class Unreadable(Page):
        text = property(refuse)

        def __init__(self):
            """Without a text."""

    taken = take({"pages": [Unreadable(), Page("a")], "answer": "yes"})

    assert isinstance(taken["pages"][0], Opaque)
    assert (taken["pages"][1], taken["answer"]) == (("page", "a"), "yes")


@pytest.mark.parametrize("around", [lambda inner: {"next": inner}, lambda inner: [inner]], ids=["fields", "items"])
def test_what_lies_very_deep_is_left_out(take, log, around):
    nested = "at the bottom"
    for _ in range(100):
        nested = around(nested)
    found, depth = take(nested), 0
    while type(found) in {dict, list}:
        found, depth = (found["next"] if type(found) is dict else found[0]), depth + 1

    assert (found, depth) == (CUT, 51)
    assert "at the bottom" not in log.texts.values()
