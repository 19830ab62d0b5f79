"""How often the cause that is told of a failing answer is the true one.

    python benchmarks/causes.py DIRECTORY [--rows N] [--quick] [--json FILE]

DIRECTORY holds sets of human judgements, as `agreement.py` has them. The answers are those that people call supported and
that pass faithfulness by the embedded judge. The document that most claims of an answer rest on is taken from its contexts,
and what else was retrieved is made up, so that the true cause is known; a row without other contexts keeps an unrelated one.
Only answers that fail then count.

- *dropped, unrelated beside it*: a reranker dropped the document, and three of other sources. `lost_before_prompt` is right.
- *dropped, its source beside it*: likewise, with the other documents of the same source in place of the three.
- *cut*: the prompt held the first half of the document, and the others whole. `cut` is right.
- *never retrieved, unrelated dropped*: the reranker dropped four of other sources. `unsupported` is right.
- *never retrieved, its source dropped*: it dropped other documents of the same source. They say a part of the same, so that
  some claims are really lost: `lost_before_prompt` is wrong at most as often as it says.
- *invented, document dropped*: of answers that people call unsupported, the sentences with words that people marked as in no
  context. The dropped document is the one that the answer rests on, the hardest there is. `unsupported` is right.

*answers* are told by their most frequent cause, `Score.cause`; *no cause* is the share of which the judge is not sure of any
claim. *claims* are told one by one; *document* is the share of the lost or cut claims for which the right document is named.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agreeing.judgements import Judgement, JudgementSet, read_sets
from rich.console import Console
from rich.table import Table

from ragspan.exceptions import JudgeError
from ragspan.judges import OverlapJudge
from ragspan.judges.judge_protocols import ClaimVerdict
from ragspan.metrics import Faithfulness
from ragspan.outcomes import Cause, Score
from ragspan.records import RagRecord, Reranking, Retrieval, RetrievedContext, as_contexts

SEED = 7
QUICK_ROWS = 40
UNRELATED = 3
KINDS = ("lost_before_prompt", "cut", "unsupported", "no cause")
SHORT = ("lost", "cut", "unsupported", "no cause")
RIGHT = {
    "dropped, unrelated beside it": "lost_before_prompt",
    "dropped, its source beside it": "lost_before_prompt",
    "cut": "cut",
    "never retrieved, unrelated dropped": "unsupported",
    "never retrieved, its source dropped": "unsupported",
    "invented, document dropped": "unsupported",
}


@dataclass(slots=True)
class Tally:
    """What was told in one situation."""

    answers: Counter[str] = field(default_factory=Counter)
    claims: Counter[str] = field(default_factory=Counter)
    named: int = 0
    """Lost or cut claims with the right document."""

    def add(self, score: Score, causes: Sequence[Cause], claims: int, place: int) -> None:
        kinds = Counter(cause.kind for cause in causes)
        self.answers[replace(score, causes=tuple(causes)).cause or "no cause"] += 1
        self.claims.update(kinds)
        self.claims["no cause"] += claims - sum(kinds.values())
        self.named += sum(cause.document == place for cause in causes)

    def as_data(self) -> dict[str, Any]:
        return {"answers": dict(self.answers), "claims": dict(self.claims), "right_document": self.named}


def main() -> None:
    arguments = parsed()
    sets = read_sets(arguments.directory, rows=arguments.rows, seed=SEED)
    told = {one.name: asyncio.run(measured(one)) for one in sets}
    console = Console(width=150)
    for name, tallies in told.items():
        console.print(table_of(name, tallies))
    if arguments.json:
        data = {
            name: {situation: one.as_data() for situation, one in tallies.items()} for name, tallies in told.items()
        }
        arguments.json.write_text(json.dumps(data, indent=2) + "\n")


async def measured(judged: JudgementSet) -> dict[str, Tally]:
    """What is told of the answers of one set in each situation."""
    draw = random.Random(SEED)
    metric = Faithfulness(OverlapJudge())
    documents = {one.source: [context.text for context in one.record.contexts or ()] for one in judged.judgements}
    tallies = {situation: Tally() for situation in RIGHT}
    for one in judged.judgements:
        others = [text for source, texts in sorted(documents.items()) if source != one.source for text in texts]
        own = await basis_of(one.record)
        if own is None or (one.supported and not await passes(metric, one.record)):
            continue
        for situation, record in situations(one, own, draw.sample(others, min(len(others), UNRELATED + 2))):
            score = await metric.score(record)
            if isinstance(score, Score) and score.label == "fail":
                add(tallies[situation], score, one, record, own)
    return tallies


def add(tally: Tally, score: Score, one: Judgement, record: RagRecord, own: str) -> None:
    """Count what is told; of an answer with inventions, what is told of these."""
    verdicts = [found for found in score.evidence if isinstance(found, ClaimVerdict) and not found.supported]
    unsupported = [verdict.claim or "" for verdict in verdicts]
    claims = [claim for claim in unsupported if one.supported or is_among(claim, one.invented)]
    found = [document.text for document in record.retrievals[0].contexts]
    place = found.index(own) + 1 if own in found else 0
    if claims:
        tally.add(score, [cause for cause in score.causes if cause.claim in claims], len(claims), place)


def is_among(claim: str, marked: Sequence[str]) -> bool:
    return any(" ".join(part.split()) in claim or claim in part for part in marked)


async def passes(metric: Faithfulness, record: RagRecord) -> bool:
    score = await metric.score(record)
    return isinstance(score, Score) and score.label == "pass"


async def basis_of(record: RagRecord) -> str | None:
    """The document that most claims rest on."""
    judge, texts = OverlapJudge(), [context.text for context in record.contexts or ()]
    try:
        found = await judge.find_support(record, await judge.extract_claims(record), texts)
    except JudgeError:  # it cannot be compared
        return None
    places = Counter(support.document for support in found if support.document is not None)
    return texts[max(places, key=places.__getitem__)] if places else None


def situations(one: Judgement, own: str, unrelated: Sequence[str]) -> Iterator[tuple[str, RagRecord]]:
    same = [context.text for context in one.record.contexts or () if context.text != own]
    stranger, *strangers = unrelated
    kept, beside = same[:1] or [stranger], same[1:]
    if not one.supported:
        if one.invented:
            yield "invented, document dropped", retrieved(one.record, same or [stranger], [own])
        return
    yield "dropped, unrelated beside it", retrieved(one.record, same or [stranger], [*strangers[:UNRELATED], own])
    yield "never retrieved, unrelated dropped", retrieved(one.record, same or [stranger], strangers)
    yield "cut", cut(one.record, own, same)
    if beside:
        yield "dropped, its source beside it", retrieved(one.record, kept, [*beside, own])
        yield "never retrieved, its source dropped", retrieved(one.record, kept, beside)


def retrieved(record: RagRecord, kept: Sequence[str], dropped: Sequence[str]) -> RagRecord:
    """The record as if a search had found all of these, and a reranker had kept the first."""
    found, left = as_contexts([*kept, *dropped]), as_contexts(kept)
    search = Retrieval(name="search", query=record.question, started_ns=0, ended_ns=1, contexts=found)
    reranking = Reranking(name="reranker", query=record.question, started_ns=1, ended_ns=2, given=found, contexts=left)
    return replace(record, contexts=left, retrievals=(search,), rerankings=(reranking,))


def cut(record: RagRecord, own: str, others: Sequence[str]) -> RagRecord:
    """The record as if the prompt had held the first half of one document, and the others whole."""
    whole = RetrievedContext(text=own, id="own")
    shown = replace(whole, text=own[: len(own) // 2], truncated=True)
    found = (whole, *as_contexts(others))
    search = Retrieval(name="search", query=record.question, started_ns=0, ended_ns=1, contexts=found)
    return replace(record, contexts=(shown, *found[1:]), retrievals=(search,))


def table_of(name: str, tallies: dict[str, Tally]) -> Table:
    table = Table(title=name)
    for heading in ("situation", "answers", *SHORT, "claims", *SHORT, "document"):
        table.add_column(heading, justify="left" if heading == "situation" else "right", no_wrap=True)
    for situation, tally in tallies.items():
        answers, claims = sum(tally.answers.values()), sum(tally.claims.values())
        if answers:
            lost = tally.claims["lost_before_prompt"] + tally.claims["cut"]
            cells = [f"{tally.answers[kind] / answers:.0%}" for kind in KINDS]
            cells += [str(claims), *(f"{tally.claims[kind] / claims:.0%}" for kind in KINDS)]
            named = f"{tally.named / lost:.0%}" if lost and RIGHT[situation] != "unsupported" else "-"
            table.add_row(situation, str(answers), *cells, named)
    return table


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="How often the cause that is told of a failing answer is the true one."
    )
    parser.add_argument("directory", type=Path, help="sets of human judgements, as NAME.jsonl.gz")
    parser.add_argument("--rows", type=int, help="about as many rows of each set")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROWS} rows")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rows = arguments.rows or QUICK_ROWS
    return arguments


if __name__ == "__main__":
    main()
