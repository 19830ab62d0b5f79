"""Whether a judge's verdict stays when an answer is decorated as assistants decorate answers.

    python benchmarks/decorations.py [--pairs FILE ...] [--rows FILE ...] [--judgements DIRECTORY] [--most N] [--failures] [--json FILE]

Every answer is judged bare and in each form: citation marks, lists of sources, phrases that name the source, openings, closings.
A decoration states no fact, so the label should stay. The table shows for each form, of the right answers that pass bare, how many
pass decorated, and of the wrong ones that fail bare, how many fail decorated; a metric that gives no score of an answer bare
leaves it out, and one that gives none decorated has lost it.

`--pairs` takes files as `contrast.py` reads them (by default `contrast_pairs.jsonl` beside this file), `--rows` files with `response`
and `supported` in each row, `--judgements` the sets that `agreement.py` reads.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agreeing.judgements import read_sets
from contrast import PAIRS, read_pairs
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ragspan import RagRecord
from ragspan.judges import OverlapJudge
from ragspan.metrics import ContextAdherence, Faithfulness
from ragspan.outcomes import Score

_STOP = re.compile(r"(?<!^\d)(?<!\n\d)(?<=[\w%)])([.!。])(?=\s|$)|(?<=[。])")


def _marked(mark: str) -> Callable[[str], str]:
    """A mark before each full stop, with numbers that count up."""

    def decorate(answer: str) -> str:
        number = 0

        def marked(stop: re.Match[str]) -> str:
            nonlocal number
            number += 1
            return mark.replace("#", str((number - 1) % 9 + 1)) + stop[0]

        found = _STOP.sub(marked, answer)
        return found if number else answer + mark.replace("#", "1")

    return decorate


def _after(mark: str) -> Callable[[str], str]:
    return lambda answer: _STOP.sub(lambda stop: stop[0] + mark.replace("#", "1"), answer)


def _lowered(answer: str) -> str:
    return answer[:1].lower() + answer[1:] if answer[1:2].islower() else answer


def _before(phrase: str) -> Callable[[str], str]:
    return lambda answer: phrase + _lowered(answer)


def _around(opening: str, closing: str) -> Callable[[str], str]:
    return lambda answer: opening + answer + closing


FORMS: dict[str, Callable[[str], str]] = {
    "[1] before the stop": _marked(" [#]"),
    "[1] after the stop": _after(" [#]"),
    "[1][2] unspaced": _marked("[#][2]"),
    "[1, 2]": _marked(" [#, 2]"),
    "[doc1]": _marked(" [doc#]"),
    "[Document 1]": _marked(" [Document #]"),
    "[^1] and notes": lambda answer: _marked("[^#]")(answer) + "\n\n[^1]: handbook.pdf\n[^2]: faq.html",
    "【1†source】": _marked("【#†source】"),
    "superscript": _after("\u00b9"),
    "<sup>": _marked("<sup>#</sup>"),
    "(Source: a.pdf, p. 12)": _marked(" (Source: policy.pdf, p. 12)"),
    "(Policy Handbook, 2023)": _marked(" (Policy Handbook, 2023)"),
    "(see section 3.2)": _marked(" (see section 3.2)"),
    "link": _marked(" ([source](https://example.com/w?id=12))"),
    "numbered link": _marked(" [[#]](https://example.com/w)"),
    "Sources:": _around("", "\n\nSources:\n[1] policy.pdf\n[2] https://example.com/returns"),
    "**References**": _around("", "\n\n**References**\n- Policy Handbook, p. 3\n- faq.md"),
    "Source: a.pdf": _around("", "\n\nSource: policy.pdf"),
    "Based on the provided context,": _before("Based on the provided context, "),
    "According to the handbook,": _before("According to the handbook, "),
    "According to the documents": _before("According to the documents you provided, "),
    "The documentation states that": _before("The documentation states that "),
    "I found that": _before("I found that "),
    "From the context:": _around("From the context: ", ""),
    "inside": lambda answer: re.sub(r"([.!])\s*$", r", according to the documentation\1", answer),
    "Great question!": _around("Great question! ", ""),
    "Sure! Here is …": _around("Sure! Here is what I found:\n\n", ""),
    "**Answer:**": _around("**Answer:** ", ""),
    "Let me know": _around("", "\n\nLet me know if you need anything else!"),
    "I hope this helps": _around("", " I hope this helps!"),
    "Would you like …?": _around("", "\n\nWould you like me to explain any of these steps in more detail?"),
    "If you'd like": _around("", "\n\nIf you'd like, I can also help with related questions."),
    "<think>": _around("<think>The user asks for 99 things. Let me look.</think>\n", ""),
    "## heading": _around("## Answer\n\n", ""),
    "bold": lambda answer: re.sub(r"\b(\w{5,})\b", r"**\1**", answer, count=2),
    "> quote": lambda answer: "\n".join(f"> {line}" for line in answer.splitlines()),
    "all at once": lambda answer: (
        "Sure! Based on the provided context, "
        + _marked(" [#]")(_lowered(answer))
        + "\n\nSources:\n[1] a.pdf\n\nLet me know if you need more!"
    ),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """An answer that people call right or wrong."""

    id: str
    question: str
    contexts: tuple[str, ...]
    answer: str
    right: bool


def main() -> None:
    arguments = parsed()
    console = Console(width=None if sys.stdout.isatty() else 150)
    report = {}
    for name, cases in cases_of(arguments):
        counts, failures = asyncio.run(counted(cases))
        console.print(table_of(name, counts))
        report[name] = {form: dict(found) for form, found in counts.items()}
        if arguments.failures:
            for failure in failures:
                console.print(failure, markup=False)
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")


def cases_of(arguments: argparse.Namespace) -> Iterator[tuple[str, list[Case]]]:
    for path in arguments.pairs:
        pairs = read_pairs(path)
        sides = [(pair, pair.right, True) for pair in pairs] + [(pair, pair.wrong, False) for pair in pairs]
        yield (
            path.stem,
            [
                Case(id=pair.id, question=pair.question, contexts=pair.contexts, answer=answer, right=right)
                for pair, answer, right in sides
            ],
        )
    for path in arguments.rows:
        rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        yield (
            path.stem,
            [
                Case(
                    id=row["id"],
                    question=row["question"],
                    contexts=tuple(row["contexts"]),
                    answer=row["response"],
                    right=row["supported"],
                )
                for row in rows
            ],
        )
    for judged in read_sets(arguments.judgements, rows=arguments.most) if arguments.judgements else ():
        yield (
            judged.name,
            [
                Case(
                    id=str(index),
                    question=each.record.question or "",
                    contexts=tuple(context.text for context in each.record.contexts or ()),
                    answer=each.record.response or "",
                    right=bool(each.supported),
                )
                for index, each in enumerate(judged.judgements)
            ],
        )


async def counted(cases: list[Case]) -> tuple[dict[str, Counter[str]], list[str]]:
    judge = OverlapJudge()
    metrics = (ContextAdherence(judge, polls=1), Faithfulness(judge))
    counts: dict[str, Counter[str]] = {form: Counter() for form in FORMS}
    failures = []
    for case in cases:
        for metric in metrics:
            bare = await label_of(metric, case, case.answer)
            if bare != ("pass" if case.right else "fail"):
                continue
            for form, decorate in FORMS.items():
                side = "right" if case.right else "wrong"
                counts[form][side] += 1
                label = await label_of(metric, case, decorate(case.answer))
                counts[form][f"{side} kept"] += label == bare
                if label != bare:
                    failures.append(f"{case.id} {metric.name} {form}: {bare} -> {label}")
    return counts, failures


async def label_of(metric: ContextAdherence | Faithfulness, case: Case, answer: str) -> str:
    outcome = await metric.score(RagRecord(question=case.question, contexts=case.contexts, response=answer))
    return str(outcome.label) if isinstance(outcome, Score) else str(outcome)


def table_of(name: str, counts: dict[str, Counter[str]]) -> Table:
    table = Table("form", "right kept", "wrong kept", title=name)
    for form, found in counts.items():
        table.add_row(escape(form), *(_share(found[f"{side} kept"], found[side]) for side in ("right", "wrong")))
    return table


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f} of {whole}" if whole else "-"


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, nargs="*", default=[PAIRS])
    parser.add_argument("--rows", type=Path, nargs="*", default=[])
    parser.add_argument("--judgements", type=Path)
    parser.add_argument("--most", type=int, help="rows drawn from each set of judgements")
    parser.add_argument("--failures", action="store_true")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
