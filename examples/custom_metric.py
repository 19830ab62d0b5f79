"""A metric of one's own beside those that come with ragspan: python examples/custom_metric.py."""

from dataclasses import dataclass

from ragspan import NotApplicable, RagRecord, Score, ScoringEngine
from ragspan.judges import OverlapJudge
from ragspan.metrics import Faithfulness
from ragspan.testing import RecordingEmitter


@dataclass(frozen=True)
class CitesAPassage:
    """Whether the answer names at least one of its passages by number."""

    name: str = "cites_a_passage"

    async def score(self, record: RagRecord) -> Score | NotApplicable:
        if not record.response or not record.contexts:
            return NotApplicable(reason="no_contexts" if record.response else "no_response")
        cited = any(f"[{number}]" in record.response for number in range(1, len(record.contexts) + 1))
        return Score(value=1.0 if cited else 0.0, threshold=0.5)


seen = RecordingEmitter()
engine = ScoringEngine(metrics=[CitesAPassage(), Faithfulness(OverlapJudge())], emitters=[seen])
engine.submit(RagRecord(question="When?", contexts=["Beta settles at night."], response="Beta settles at night [1]."))
engine.submit(RagRecord(question="When?", contexts=["Beta settles at night."], response="Beta settles at night."))
engine.flush(timeout=10)
for scored in seen.scored:
    print(scored.record.response, "->", scored.outcomes["cites_a_passage"])
engine.shutdown(timeout=10)
