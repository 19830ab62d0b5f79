"""What a claim says of one row of a table, where the row has another value: facts of row, column and value.

A claim speaks of a row by its name. A value of the claim belongs to the name before it, or where a clause begins with values, to
the one after it; in "Basic and Pro cost $5 and $20" values follow the order of the names. It belongs to the column whose name
stands nearest, or to one with values of its kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from ragspan.judges.overlap.contradictions import Contradiction
from ragspan.judges.overlap.contradictions.flags import Clause, Topic
from ragspan.judges.overlap.derived import is_exact
from ragspan.judges.overlap.english import english
from ragspan.judges.overlap.rows import CURRENCIES, LONGEST_TEXT, Rows, Value, unit_in, value_of
from ragspan.text.keys import is_negation, is_number
from ragspan.text.languages import ENGLISH, Language

_MOST_TABLES = 6
"""Tables of which one claim may name rows."""
_NEAR = 6
"""Words between a value and the name of its column."""
_BOUNDARIES = frozenset({"but", "while", "wherea", "whereas", "howev", "although", "though"})
_OPEN = frozenset(["than", "differ", "total", "sum", "averag", "altogeth", "combin", "togeth", "if", "or"])
"""Words with which a value may be another than the row's."""
_LIMITS = frozenset(
    [
        "about",
        "around",
        "near",
        "almost",
        "rough",
        "approxim",
        "over",
        "under",
        "least",
        "most",
        "between",
        "exceed",
        "within",
        "to",
    ]
)
"""Words before a value that is not an exact one."""
_YES, _NO = (
    frozenset({"yes", "true", "✓", "✔", "✅", "y", "included"}),
    frozenset({"no", "false", "✗", "✘", "❌", "n", "none", "-"}),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Said:
    """A number or a cell's words in a claim, or the name of a row."""

    at: int
    end: int
    value: Value | None = None
    row: int = -1


@dataclass(frozen=True, kw_only=True, slots=True)
class RowFinding:
    """What tables say of a claim."""

    holds: bool = False
    """A row has the values that the claim gives of it."""
    contradiction: Contradiction | None = None
    said: frozenset[str] = frozenset()
    """The keys of the row's name and of the value that contradicts."""


def find_in_rows(
    words: Sequence[str], keys: Sequence[str], tables: Sequence[Sequence[Rows]], language: Language
) -> RowFinding:
    """What the tables say of a claim with these words; a table that holds it outweighs one that contradicts it."""
    against: RowFinding | None = None
    for rows, names in islice(_naming(words, keys, tables), _MOST_TABLES):
        found = _in_table(words, keys, rows, names, language)
        if found.holds:
            return found
        against = against or (found if found.contradiction is not None else None)
    return against or RowFinding()


def _naming(
    words: Sequence[str], keys: Sequence[str], tables: Sequence[Sequence[Rows]]
) -> Iterator[tuple[Rows, list[_Said]]]:
    """The tables of which a claim names rows, each under the first column that has the names."""
    for table in tables:
        for rows in table:
            names = [_Said(at=at, end=end, row=row) for at, end, row in rows.named(words, keys)]
            if names:
                yield rows, names
                break


def _in_table(
    words: Sequence[str], keys: Sequence[str], rows: Rows, names: Sequence[_Said], language: Language
) -> RowFinding:
    if language.code == "en" and (order := _order(words, keys, names, rows)) is not None:
        return order
    texts = list(_texts(keys, names, rows))
    numbers = _numbers(keys, [*names, *texts], rows)
    said = sorted([*names, *texts, *numbers], key=lambda one: one.at)
    bounds = [0, *(at for at in range(1, len(keys)) if keys[at] in _BOUNDARIES), len(keys)]
    holds, last = False, names[0]
    for start, end in pairwise(bounds):
        inside = [one for one in said if start <= one.at < end]
        pairs = list(_pairs(inside, last))
        for name, value in pairs:
            beside = [other.value for one, other in pairs if one is name and other is not value]
            column = _column_against(keys[start:end], start, name.row, value, beside, rows)
            if column is not None and column >= 0:
                return _against(rows, name.row, column, " ".join(words[value.at : value.end]), value)
            holds |= column is not None
        here = [one for one in inside if one.value is None] or [last]
        flagged = _flags(words[start:end], here, rows) if language.code == "en" else RowFinding()
        if flagged.contradiction is not None:
            return flagged
        holds |= flagged.holds
        last = next((one for one in reversed(inside) if one.value is None), last)
    return RowFinding(holds=holds)


def _pairs(inside: Sequence[_Said], last: _Said) -> Iterator[tuple[_Said, _Said]]:
    """Each value of a clause with the name that it belongs to."""
    names = [one for one in inside if one.value is None]
    values = [one for one in inside if one.value is not None]
    if not names:
        yield from ((last, value) for value in values)
        return
    groups: list[tuple[list[_Said], list[_Said]]] = []
    first = inside[0].value is None
    for one in inside:
        is_name = one.value is None
        if not groups or (is_name == first and groups[-1][is_name == first]):
            groups.append(([], []))
        groups[-1][is_name != first].append(one)
    for group in groups:
        named, given = group if first else group[::-1]
        if not named:
            named = names[-1:]
        if len(named) == len(given):
            yield from zip(named, given, strict=True)
        elif len(named) == 1 or len(given) == 1:
            yield from ((name, value) for name in named for value in given)


def _column_against(
    keys: Sequence[str], start: int, row: int, said: _Said, beside: Sequence[Value | None], rows: Rows
) -> int | None:
    """The column in which a row has another value than is said of it; -1 where it has that value, None where neither is clear."""
    value, cells = said.value, rows.values[row]
    if value is None:
        return None
    nearest = _nearest_column(keys, said.at - start, said.end - start, value, rows, row)
    own = [column for column, cell in enumerate(cells) if cell.keys and value.is_as(cell)]
    if own and (nearest is None or nearest in own):
        return -1
    before = keys[max(0, said.at - start - 2) : said.at - start]
    if not (_OPEN - rows.heads).isdisjoint(keys) or not _LIMITS.isdisjoint(before) or any(map(is_negation, keys)):
        return None
    if nearest is None:
        elsewhere = [at for at in rows.columns_with(value) if cells[at].keys and cells[at].may_stand_for(value)]
        is_telling = value.number is None or bool(value.unit) or is_exact(value.raw) or rows.is_record
        if own or not elsewhere or not is_telling:
            return None
        nearest = elsewhere[0]
    is_beside = any(other is not None and cells[nearest].is_as(other) for other in beside)
    return None if is_beside and not own else nearest


def _nearest_column(keys: Sequence[str], at: int, end: int, value: Value, rows: Rows, row: int) -> int | None:
    """The column whose name stands nearest to a number, of those with a value of its kind in the row."""
    if value.number is None:
        return None
    best: tuple[int, int] | None = None
    for column, words in enumerate(rows.columns):
        cell = rows.values[row][column]
        if column == rows.naming or cell.number is None or not words or not words <= frozenset(keys):
            continue
        if not cell.may_stand_for(value):
            continue
        gap = min(abs(place - at) if place < at else place - end + 1 for place, key in enumerate(keys) if key in words)
        if best is None or gap < best[0]:
            best = gap, column
    return best[1] if best is not None and best[0] <= _NEAR else None


def _flags(words: Sequence[str], names: Sequence[_Said], rows: Rows) -> RowFinding:
    """Whether a clause says of rows that they have what their table has under "yes", or the contradiction."""
    clause, holds = Clause(words), False
    for column, name in enumerate(rows.table.columns):
        if not rows.columns[column] or column == rows.naming:  # those of a record are `Flag`s
            continue
        for one in names:
            cell = rows.table.rows[one.row][column].lower()
            if cell not in _YES | _NO:
                continue
            parts = name.lower().split()
            topic = Topic(name=name, words=rows.columns[column], compound="".join(parts), holds=cell in _YES)
            says = clause.says(topic)
            if says is not None and says != topic.holds:
                denied = name if says else f"no {name}"
                return _against(rows, one.row, column, denied)
            holds |= says is not None
    return RowFinding(holds=holds)


_MORE = frozenset(
    ["more", "higher", "greater", "larger", "bigger", "longer", "taller", "heavier", "faster", "pricier", "later"]
)
_LESS = frozenset(["less", "lower", "fewer", "smaller", "shorter", "cheaper", "lighter", "slower", "earlier"])
_MOST = frozenset(
    ["most", "highest", "greatest", "largest", "biggest", "longest", "tallest", "heaviest", "fastest", "priciest"]
)
_LEAST = frozenset(["least", "lowest", "fewest", "smallest", "shortest", "cheapest", "lightest", "slowest"])
_PRICED = frozenset({"expensive", "costly", "cheaper", "cheapest", "pricier", "priciest"})
_WEIGHED = frozenset({"heavier", "heaviest", "lighter", "lightest"})


def _order(words: Sequence[str], keys: Sequence[str], names: Sequence[_Said], rows: Rows) -> RowFinding | None:
    """What a table says of "A costs more than B", or of "A is the cheapest"; None for other claims."""
    lower = [word.lower() for word in words]
    signs = {word: sign for some, sign in ((_MORE | _MOST, 1), (_LESS | _LEAST, -1)) for word in some}
    at = next((place for place, word in enumerate(lower) if word in signs), None)
    if at is None or any(map(is_negation, keys)) or (at and (lower[at - 1] == "at" or is_number(keys[at - 1]))):
        return None
    column = _ordered_by(lower, keys, at, names[0].row, rows)
    if column is None:
        return None
    before, after = names[0], names[-1]
    others = [row[column].number for row in rows.values]
    own = others[before.row]
    if "than" in lower[at:] and len(names) == 2 and before.at < lower.index("than", at) < after.at:  # noqa: PLR2004
        other = others[after.row]
        is_right = own is not None and other is not None and (own - other) * signs[lower[at]] > 0
    elif lower[at] in _MOST | _LEAST and len(names) == 1 and own is not None and None not in others:
        is_right = own == (max if signs[lower[at]] > 0 else min)(one for one in others if one is not None)
    else:
        return None
    if is_right:
        return RowFinding(holds=True)
    said = " ".join(words[at : at + 2])
    shown = "; ".join(dict.fromkeys(rows.shown(name.row, column) for name in (before, after)))
    name = rows.table.rows[before.row][rows.naming]
    return RowFinding(contradiction=Contradiction(kind="row", response=f"{name}: {said}", context=shown))


def _ordered_by(lower: Sequence[str], keys: Sequence[str], at: int, row: int, rows: Rows) -> int | None:
    """The column of numbers that a comparison is about."""
    numeric = [
        column for column, value in enumerate(rows.values[row]) if value.number is not None and column != rows.naming
    ]
    if _PRICED.intersection(lower[at : at + 2]):
        price = ENGLISH.key("price")
        found = [at for at in numeric if rows.values[row][at].unit in CURRENCIES or price in rows.columns[at]]
    elif lower[at] in _WEIGHED:
        found = [at for at in numeric if rows.values[row][at].unit in {"grams", "pounds"}]
    else:
        found = [at for at in numeric if rows.columns[at] and rows.columns[at] <= frozenset(keys)]
        if not found and lower[at] not in {"most", "least"}:
            found = numeric
    return found[0] if len(found) == 1 else None


def _against(rows: Rows, row: int, column: int, instead: str, value: _Said | None = None) -> RowFinding:
    name = rows.table.rows[row][rows.naming]
    said = instead.replace("$ ", "$").replace("€ ", "€").replace("£ ", "£")
    return RowFinding(
        contradiction=Contradiction(kind="row", response=f"{name}: {said}", context=rows.shown(row, column)),
        said=frozenset((*rows.keys_of(row), *(value.value.keys if value and value.value else ()))),
    )


def _numbers(keys: Sequence[str], others: Sequence[_Said], rows: Rows) -> Iterator[_Said]:
    """The numbers of a claim with their currency, scale and unit."""
    taken = {place for one in others for place in range(one.at, one.end)}
    for at, key in enumerate(keys):
        if not is_number(key) or at in taken or key in rows.heads:
            continue
        start = at - 1 if at and keys[at - 1] in CURRENCIES else at
        end = at + 1
        while keys[end : end + 1] and (keys[end] in english().scales or unit_in(keys[end : end + 1])[0]):
            end += 1
        yield _Said(at=start, end=end, value=value_of(keys[start:end], ("", 1.0)))


def _texts(keys: Sequence[str], names: Sequence[_Said], rows: Rows) -> Iterator[_Said]:
    taken = {place for name in names for place in range(name.at, name.end)}
    for at in range(len(keys)):
        if at in taken:
            continue
        for end in range(at + 1, min(len(keys), at + LONGEST_TEXT) + 1):
            if (value := tuple(keys[at:end])) in rows.texts:
                yield _Said(at=at, end=end, value=Value(keys=value, number=None))
