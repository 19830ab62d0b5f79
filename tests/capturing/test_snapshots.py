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
from ragspan.safe_copy import (
    CUT,
    OPAQUE,
    Hidden,
    ObjectFields,
    Opaque,
    Snapshots,
    fields_of,
    given_items,
    has_plain_dict,
    in_slot,
    items_of,
    kept_entries,
    number_of,
    replace_field,
    size_of,
    small_copy,
    text_keyed,
)


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
    (dt.datetime(2026, 1, 2, 3, 4, tzinfo=dt.timezone.utc), "2026-01-02T03:04:00+00:00"),
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


def test_of_a_step_a_long_text_is_left_out_and_what_stands_beside_it_stays(take, log):
    assert take({"context": "word " * 5000, "question": "When?"}, whole=False) == {
        "context": OPAQUE,
        "question": "When?",
    }
    assert list(log.texts.values()) == ["When?"]


def test_a_list_that_holds_a_new_document_beside_known_ones_has_both(take):
    known, new = Page("known"), Page("new")
    take([known])

    assert take([known, new]) == [("page", "known"), ("page", "new")]


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


LONG = "a" * 20_000


@pytest.mark.parametrize(
    ("value", "taken"),
    [
        (LONG, LONG),
        (LONG + "a", OPAQUE),
        ({"a": LONG}, {"a": LONG}),
        ({"a": LONG + "a"}, {"a": OPAQUE}),
        ({"a": LONG + "a", "b": 1}, {"a": OPAQUE, "b": 1}),
        ([LONG, LONG + "a"], [LONG, OPAQUE]),
        (list(range(9)), [0, 1, 2, 3]),  # dull
        ([[1]] * 2001, [[1]] * 2000),
    ],
    ids=lambda value: str(value)[:20],
)
def test_how_much_is_copied_of_a_step_whose_documents_matter(take, value, taken):
    assert take(value, whole=False) == taken


def test_a_steps_own_classes_and_hidden_ones_and_objects_by_their_fields(log):
    stand_in = Opaque(7)
    snapshots = Snapshots({Page: read_page}, hidden={"State"}, in_steps={Page: stand_in}, marks={"role"})
    state, page = State("q", [Page("p"), 1]), Page("p")

    assert snapshots.take(page, log, whole=False) is stand_in
    assert snapshots.take(page, log) == ("page", "p")
    hidden = snapshots.take([state], log)[0]
    assert (type(hidden), hidden.inside) == (Hidden, {"question": "q", "pages": [("page", "p"), 1]})
    shown = Snapshots({Page: read_page}).take(state, log)
    assert (type(shown), shown["pages"]) == (ObjectFields, [("page", "p"), 1])
    assert snapshots.take(page.__init__, log).identity != 0


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


@pytest.mark.parametrize(
    ("metadata", "is_small"),
    [
        ({}, True),
        ({"a": "b" * 99, "c": 1.5, "d": None, "e": True, "f": 2**62 - 1}, True),
        ({"a": "b" * 100}, False),
        ({1: "a"}, False),
        ({"a": []}, False),
        ({str(number): 1 for number in range(201)}, False),
        (type("Own", (dict,), {})(a=1), False),
        (None, False),
    ],
    ids=lambda value: str(value)[:20],
)
def test_metadata_that_take_up_little_are_kept_whole(metadata, is_small):
    assert small_copy(metadata) == (metadata if is_small else None)


def test_nested_metadata_are_kept_five_deep_and_two_hundred_in_all():
    deep = {"a": {"b": {"c": {"d": {"e": {"f": {}}}}}}}
    wide = kept_entries({"a": list(range(150)), "b": list(range(150)), "c": {"d": 1}}, nested=True)

    assert kept_entries(deep, nested=True) == {"a": {"b": {"c": {"d": {"e": {}}}}}}
    assert (len(wide["a"]), len(wide["b"]), wide["c"]) == (150, 47, {})
    assert kept_entries({"a": (1, [2, object()], None)}, nested=True) == {"a": [1, [2], None]}
    assert kept_entries({"a": [[[[[[1]]]]]]}, nested=True) == {"a": [[[[[]]]]]}


@pytest.mark.parametrize(
    ("value", "number"),
    [(1, 1), (1.5, 1.5), (np.float64(2), 2.0), (True, None), ("1", None), (None, None), (2**1023 - 1, 2**1023 - 1), (2**1023, None), (Colour.RED, None)],
)  # fmt: skip
def test_a_number_is_pythons_own(value, number):
    assert (number_of(value), type(number_of(value))) == (number, type(number))


def test_items_are_those_of_lists_and_of_what_a_program_hands_over():
    assert [items_of(one) for one in ([1], (1,), {1}, deque([1]), {"a": 1}, "a", None)] == [[1]] * 4 + [None] * 3
    assert (items_of(deque([1, 2]), 1), given_items(iter([1, 2, 3]), 2), given_items((1,))) == ([1], [1, 2], [1])
    assert [given_items(one) for one in ("ab", b"ab", {"a": 1}, 3, None)] == [None] * 5
    assert text_keyed({"a": 1, 2: 3, Colour.RED: 4, type("Own", (str,), {})("b"): 5}) == {"a": 1, "b": 5}


def test_fields_are_replaced_where_an_object_keeps_them_in_its_dictionary():
    page, slotted = Page("before"), dataclasses.make_dataclass("Slotted", ["a"], slots=True)(1)

    assert (replace_field(page, "text", "after"), page.text) == (True, "after")
    assert (replace_field(page, "other", 1), replace_field(slotted, "a", 2), slotted.a) == (False, False, 1)
    assert (in_slot(slotted, "a"), in_slot(slotted, "b"), in_slot(page, "text")) == (1, None, None)
    assert (has_plain_dict(Page), has_plain_dict(type(slotted)), has_plain_dict(int)) == (True, False, False)
    assert not has_plain_dict(type("Own", (Page,), {"__getattribute__": refuse}))


def test_the_size_of_plain_data_counts_what_is_there_twice_once():
    text = "a" * 1000
    whole = size_of(text)

    assert (size_of([]), size_of(None), size_of(True), size_of(3), size_of([1, 2])) == (0, 0, 0, 64, 3 * 64)
    assert size_of({"a": 1}) == 64 + 64 + size_of("a") + 64 + 64
    assert (whole, size_of([text, text])) == (pytest.approx(1000, abs=100), 64 + whole)
    assert size_of(State(text, [text])) == size_of(State("", [])) - size_of("") + whole + 64


def test_attributes_are_read_from_slots_and_dictionaries_and_no_property_is_asked():
    @dataclasses.dataclass(slots=True)
    class Slotted:
        a: int

    class Own:
        __getattribute__ = __dict__ = property(refuse)

    assert (fields_of(Slotted(1)), fields_of(Page("x")), fields_of(Own())) == ({"a": 1}, {"text": "x"}, {})
