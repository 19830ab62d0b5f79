"""Payloads as they were when they passed by."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import uuid
from collections import deque

import numpy as np
import pytest

from ragspan.capturing.log import RequestLog
from ragspan.safe_copy import CUT, Snapshots, fields_of, kept_entries


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


def test_a_document_is_read_once_and_kept(take, log):
    page = Page("before")
    first = take([page])
    page.text = "after"

    assert take({"page": page})["page"] is first[0]
    assert first == [("page", "before")]
    assert log.kept[id(page)] == (page, ("page", "before"))


def test_names_of_fields_become_texts(take):
    assert take({"a": 1, 2: Page("text")}) == {"a": 1, "2": ("page", "text")}


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
    assert repr(take([[[0] * 50] * 50] * 50)).count("0") < 2000


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


# Metadata


def test_long_texts_of_metadata_share_their_room_and_short_ones_stay():
    texts = {}
    kept = kept_entries(
        {"long": "a" * 15_000, "longer": "b" * 15_000, "page": "4", "day": dt.date(2026, 1, 2)}, texts=texts
    )

    assert [len(kept["long"]), len(kept["longer"])] == [15_000, 5_000]
    assert (kept["page"], kept["day"]) == ("4", "2026-01-02")
    assert set(texts.values()) == set(kept.values())


@pytest.mark.parametrize(("nested", "kept"), [(True, {"a": [{"b": 1}], "c": None}), (False, {"c": None})])
def test_only_nested_metadata_keep_lists_and_no_objects(nested, kept):
    assert kept_entries({"a": [{"b": 1, "d": object()}], "c": None, "e": object()}, nested=nested) == kept


def test_attributes_are_read_from_slots_and_dictionaries_and_no_property_is_asked():
    @dataclasses.dataclass(slots=True)
    class Slotted:
        a: int

    class Own:
        __getattribute__ = __dict__ = property(refuse)

    assert (fields_of(Slotted(1)), fields_of(Page("x")), fields_of(Own())) == ({"a": 1}, {"text": "x"}, {})
