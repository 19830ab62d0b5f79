"""Score one answer of plain Python code: python examples/quickstart.py."""

import ragspan
from ragspan import ScoringEngine
from ragspan.judges import OverlapJudge
from ragspan.metrics import ContextAdherence, Faithfulness
from ragspan.testing import RecordingEmitter

judge = OverlapJudge()  # embedded: no model, no key, no network; OpenAIJudge("gpt-4o-mini") is the LLM judge
seen = RecordingEmitter()  # in production: OTelEmitter()
engine = ScoringEngine(metrics=[ContextAdherence(judge), Faithfulness(judge)], emitters=[seen])

with ragspan.capture(question="When are card payments settled?", sink=engine) as answer:
    answer.contexts = ["Beta settles card payments after midnight.", "Alpha stores customer profiles in Postgres."]
    answer.response = "Beta settles card payments after midnight. It takes 45 minutes in Zurich."

engine.flush(timeout=10)
for name, outcome in seen.scored[0].outcomes.items():
    print(f"{name}: {outcome}\n  {getattr(outcome, 'explanation', '')}\n")
engine.shutdown(timeout=10)
