"""An OpenAI-compatible endpoint that keeps what it was asked and what it said, for `judge_cost.py`.

    python -m judging.overhearing

It answers at once, as a model might that finds everything in order: reasons of a usual length, the sentences of the
response as claims, and a verdict for each thing that is asked about. `GET` tells the exchanges since the last `GET`.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from judging.endpoint import NUMBERED, Endpoint, completion, forms_in, serve

CLAIMS = (
    "Beta settles card payments after midnight.",
    "Alpha stores invoices in Lisbon until the end of the month.",
    "Orion forwards up to 120 delivery notes within two hours.",
    "Vega archives audit records in the second region every Monday.",
    "Hermes rejects refunds before noon, except on request.",
)
"""Of every response: its sentences."""
REASON = (
    "Passage 2 says that card payments are settled after midnight, and passage 4 says the same of the place and the day; "
    "nothing in the other passages speaks against it."
)
SHORT_REASON = "Passage 2 says that card payments are settled after midnight; nothing speaks against it."
"""Of a claim, in at most fifteen words, as the one request asks for it."""
HOLDS = "settlement of card payments after midnight; nothing of the rest"
"""What a context holds, in at most ten words, as the one request asks for it."""


class OverhearingEndpoint(Endpoint):
    def __init__(self) -> None:
        super().__init__(latency=0.0)
        self._exchanges: list[dict[str, Any]] = []

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        text = json.dumps(finding(request["messages"][-1]["content"]))
        self._exchanges.append({"request": request, "reply": text})
        return completion(request, {"role": "assistant", "content": text}, "stop")

    def tell(self) -> object:
        told, self._exchanges = self._exchanges, []
        return told


def finding(task: str) -> dict[str, Any]:
    """The reply to a task, which names its forms."""
    forms = forms_in(task)
    return {"answer": {form: of_ragspan(form, task, is_short=len(forms) > 1) for form in forms}}


def of_ragspan(form: str, task: str, *, is_short: bool) -> object:
    numbers = [int(number) for numbers in NUMBERED.findall(task)[-1:] for number in numbers.split(",")]
    findings: dict[str, object] = {
        "grounding": {"reasoning": REASON, "verdict": "grounded"},
        "completeness": {"reasoning": REASON, "value": 1.0},
        "claims": list(CLAIMS),
        "judged_claims": {
            "claims": [{"claim": claim, "reasoning": SHORT_REASON, "verdict": "supported"} for claim in CLAIMS],
            "more": False,
        },
        "claim_verdicts": [{"number": number, "reasoning": REASON, "verdict": "supported"} for number in numbers],
        "context_verdicts": [
            {"number": number, "reasoning": HOLDS if is_short else REASON, "verdict": "useful"} for number in numbers
        ],
    }
    return findings[form]


if __name__ == "__main__":
    asyncio.run(serve(OverhearingEndpoint()))
