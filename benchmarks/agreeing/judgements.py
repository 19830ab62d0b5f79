"""Answers that people judged, as `agreement.py` reads them."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragspan import RagRecord

SUFFIX = ".jsonl.gz"
COMPLETE = 3.5
"""The mean rating, of 1 to 4, from which people call an answer complete."""
_NO_JUDGE = ("human_", "conditional_idk")
"""What recorded values begin with that are not another judge's scores."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ratings:
    """What annotators gave one answer, from 1 to 4."""

    mean: float
    votes: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    """One answer and what people said of it."""

    record: RagRecord
    source: str
    """Answers to one source are not independent of each other."""
    supported: bool
    faithfulness: Ratings | None
    """None where people marked spans and rated nothing."""
    completeness: Ratings | None
    recorded: Mapping[str, float]
    """Scores of other judges, by their names."""
    model: str = ""
    """Whose answer it is."""
    invented: tuple[str, ...] = ()
    """Parts of the response that people marked as in no context, and not as true all the same."""

    @property
    def held_out(self) -> bool:
        """True for sources of the half that the embedded judge's calibration was not fitted on."""
        return bool(hashlib.sha256(self.source.encode()).digest()[-1] % 2)

    @property
    def is_empty(self) -> bool:
        return not (self.record.response or "").strip()


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgementSet:
    """The judgements of one file, those with contexts."""

    name: str
    judgements: tuple[Judgement, ...]


def read_sets(directory: Path, *, rows: int | None = None, seed: int = 0) -> list[JudgementSet]:
    """Every `NAME.jsonl.gz` of a directory, by name.

    Args:
        directory: where they are.
        rows: of each set, no more than enough whole sources, drawn at random, for that many; None takes all.
        seed: of the drawing.

    Raises:
        FileNotFoundError: there is no such file.
    """
    paths = sorted(directory.glob(f"*{SUFFIX}"))
    if not paths:
        raise FileNotFoundError(f"no file in {directory} ends in {SUFFIX}")
    sets = [JudgementSet(name=path.name.removesuffix(SUFFIX), judgements=tuple(read_file(path))) for path in paths]
    return sets if rows is None else [drawn(one, rows, random.Random(f"{seed} {one.name}")) for one in sets]


def drawn(judged: JudgementSet, rows: int, draw: random.Random) -> JudgementSet:
    """Whole sources, in random order, until there are as many rows as asked for."""
    sources = sorted({judgement.source for judgement in judged.judgements})
    draw.shuffle(sources)
    kept: list[Judgement] = []
    for source in sources:
        if len(kept) >= rows:
            break
        kept += [judgement for judgement in judged.judgements if judgement.source == source]
    return JudgementSet(name=judged.name, judgements=tuple(kept))


def read_file(path: Path) -> Iterable[Judgement]:
    """The judgements of one file of JSON lines, packed or not."""
    content = path.read_bytes()
    rows = map(json.loads, (gzip.decompress(content) if path.suffix == ".gz" else content).splitlines())
    return (_judgement(row) for row in rows if row["contexts"])


def _judgement(row: Mapping[str, Any]) -> Judgement:
    return Judgement(
        record=RagRecord(question=row["question"], contexts=row["contexts"], response=row["response"]),
        source=row.get("source_id") or row["id"],
        model=row.get("model", ""),
        supported=row["supported"],
        faithfulness=_ratings(row.get("faithfulness")),
        completeness=_ratings(row.get("completeness")),
        recorded={name: float(value) for name, value in row.get("recorded", {}).items() if _is_score(name, value)},
        invented=tuple(
            row["response"][span["start"] : span["end"]]
            for span in row.get("unsupported_spans", ())
            if not span.get("implicit_true")
        ),
    )


def _ratings(found: Mapping[str, Any] | None) -> Ratings | None:
    if found is None or found["mean"] is None:
        return None
    votes: Sequence[int] = found["votes"]
    return Ratings(mean=found["mean"], votes=tuple(votes))


def _is_score(name: str, value: object) -> bool:
    return isinstance(value, int | float) and not name.startswith(_NO_JUDGE)
