"""What the embedded judge's verdicts are worth on answers as assistants write them.

    python benchmarks/realistic.py FILE [--failures]

Each row of FILE has `id`, `question`, `contexts`, `response`, and says whether people find it right: `supported`, or a `label` that is `right` or
`wrong`. It prints how many fails and passes of context adherence are right, and how many of the wrong and of the right answers fail.
`--failures` prints the explanation of each answer that fails, for a count by hand of those that name the error.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from pathlib import Path

from ragspan import RagRecord
from ragspan.judges import OverlapJudge
from ragspan.metrics import ContextAdherence
from ragspan.outcomes import Score


async def main() -> None:
    parser = argparse.ArgumentParser(description="What the embedded judge's verdicts are worth on realistic answers.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--failures", action="store_true")
    arguments = parser.parse_args()
    metric = ContextAdherence(OverlapJudge(), polls=1)
    counts = Counter[tuple[bool, str | None]]()
    for row in map(json.loads, arguments.file.read_text("utf-8").splitlines()):
        is_right = row["supported"] if "supported" in row else row["label"] == "right"
        record = RagRecord(question=row["question"], contexts=row["contexts"], response=row["response"])
        outcome = await metric.score(record)
        label = outcome.label if isinstance(outcome, Score) else None
        counts[bool(is_right), label] += 1
        if arguments.failures and label == "fail" and isinstance(outcome, Score):
            print(f"{row['id']} ({'right' if is_right else 'wrong'}): {outcome.explanation}")
    wrong, right = (sum(number for (side, _), number in counts.items() if side is one) for one in (False, True))
    fails, passes = (counts[False, label] + counts[True, label] for label in ("fail", "pass"))
    print(f"{counts[False, 'fail']} of {fails} fails are right, and {counts[True, 'pass']} of {passes} passes")
    print(f"{counts[False, 'fail']} of {wrong} wrong answers fail, and {counts[True, 'fail']} of {right} right ones")


if __name__ == "__main__":
    asyncio.run(main())
