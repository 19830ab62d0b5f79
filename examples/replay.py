"""Replays recorded answers through a LangChain chain with the handler attached: python examples/replay.py FILE.jsonl.

Each line is an object with "question", "contexts" (a list of texts) and "response"; a .gz file works, too. The chain
retrieves the recorded contexts and its model says the recorded response, so the handler sees real traffic. Scores come
from the engine that the RAGSPAN_* variables describe.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnablePassthrough

from ragspan import Score, ScoredRecord, ScoringEngine
from ragspan.config import Settings
from ragspan.metrics.metric_catalogue import metrics_from
from ragspan.testing import RecordingEmitter
from ragspan_langchain import RagspanCallbackHandler

PROMPT = ChatPromptTemplate.from_template("Answer from these passages:\n\n{context}\n\nQuestion: {question}")


class RecordedRetriever(BaseRetriever):
    """Finds what was found when the answer was recorded."""

    contexts: list[str]

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:  # noqa: ARG002
        return [Document(page_content=text, id=str(place)) for place, text in enumerate(self.contexts)]


def rows(file: Path) -> Iterator[dict[str, Any]]:
    open_text = gzip.open if file.suffix == ".gz" else open
    with open_text(file, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            row = json.loads(line)
            if not isinstance(row.get("contexts"), list) or not isinstance(row.get("response"), str):
                sys.exit(f"{file}:{number}: a row needs a list 'contexts' and a text 'response'")
            yield row


def chain_for(row: dict[str, Any]) -> Runnable[str, str]:
    retriever = RecordedRetriever(contexts=row["contexts"])
    model = GenericFakeChatModel(messages=iter([AIMessage(row["response"])]))
    context = retriever | (lambda found: "\n\n".join(document.page_content for document in found))
    return ({"context": context, "question": RunnablePassthrough()} | PROMPT | model | StrOutputParser()).with_config(
        run_name="replay"
    )


@dataclass
class Tally:
    """What was scored, in constant memory but for the scores themselves."""

    scores: dict[str, list[float]] = field(default_factory=dict)
    others: Counter[str] = field(default_factory=Counter)

    def add(self, scored: ScoredRecord) -> None:
        for name, outcome in scored.outcomes.items():
            if isinstance(outcome, Score):
                self.scores.setdefault(name, []).append(outcome.value)
            else:
                self.others[f"{name}: {getattr(outcome, 'reason', None) or getattr(outcome, 'error_type', '')}"] += 1


def replay(file: Path, *, limit: int | None) -> None:
    tally = Tally()
    emitter = RecordingEmitter(on_emit=tally.add)
    settings = Settings.from_environment()
    engine = ScoringEngine(metrics=metrics_from(settings), emitters=[emitter], queue_size=100_000)
    config: Any = {"callbacks": [RagspanCallbackHandler(sink=engine)]}
    started, count = time.monotonic(), 0
    for count, row in enumerate(rows(file), start=1):
        chain_for(row).invoke(row.get("question") or "Summarise the passages.", config=config)
        if count == limit:
            break
    replayed = time.monotonic() - started
    engine.flush(timeout=3600)
    elapsed = time.monotonic() - started
    print(f"{count} answers replayed in {replayed:.1f} s, scored by {settings.judge} after {elapsed:.1f} s")
    for name, scores in tally.scores.items():
        print(f"  {name:<20} {len(scores):>6} scored   mean {statistics.fmean(scores):.3f}")
    for reason, times in tally.others.most_common():
        print(f"  {times:>6} without a score   {reason}")
    print(f"  {engine.stats()}")
    engine.shutdown(timeout=10)


def main() -> None:
    parser = argparse.ArgumentParser(description="Replay recorded answers through a LangChain chain.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--limit", type=int, help="rows to replay; all by default")
    arguments = parser.parse_args()
    replay(arguments.file, limit=arguments.limit)


if __name__ == "__main__":
    main()
