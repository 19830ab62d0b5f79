"""A judge for the tests of a fleet, which knows who asked about which record."""

from __future__ import annotations

import json
import re
import threading
import time
from dataclasses import dataclass

from servers.http import LocalHttp

_PARTS = re.compile(r"^Task: reply with the parts? ([\w, ]+?)(?: alone)?\.$", re.MULTILINE)
_NUMBERED = re.compile(r"exactly one verdict for each of these numbers: ([\d, ]+)\.")
_RECORD = re.compile(r"record-\d+")
_LONGEST_HOLD = 120.0  # seconds


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request that the judge got."""

    worker: str
    """By its API key."""
    record: str
    at: float
    """Seconds of the monotonic clock."""


class FleetJudge(LocalHttp):
    """An OpenAI-compatible endpoint. It finds the id of the record in what it is asked, so records have to hold theirs.

    `latency` is in seconds; `status` is what it answers with, 200 if all is well. `held` has the records whose questions
    wait for `release()`; `hold_all()` holds every question.
    """

    def __init__(self):
        self.latency = 0.0
        self.status = 200
        self.asked = []
        self._held = set()
        self._holds_all = False
        self._changed = threading.Condition()
        super().__init__(self._reply_to)
        self.base_url = f"{self.url}/v1"

    def hold_back(self, *records):
        """Answer no question about these until `release()`."""
        self._held |= set(records)

    def hold_all(self):
        self._holds_all = True

    def release(self, *records):
        """Answer the questions about these records, or about all."""
        with self._changed:
            self._held = self._held - set(records) if records else set()
            self._holds_all = self._holds_all and bool(records)
            self._changed.notify_all()

    def askers(self, record=None):
        """The workers that asked about this record, or about any, in the order of their requests."""
        return [asked.worker for asked in list(self.asked) if record is None or asked.record == record]

    def asked_about(self, worker=None):
        """The records that this worker asked about, or any."""
        return {asked.record for asked in list(self.asked) if worker is None or asked.worker == worker}

    def close(self):
        self.release()
        super().close()

    def _reply_to(self, request):
        record = _RECORD.search(request.body.decode())
        asked = Asked(
            worker=request.headers["authorization"].removeprefix("Bearer "),
            record=record[0] if record else "",
            at=time.monotonic(),
        )
        self.asked.append(asked)
        time.sleep(self.latency)
        with self._changed:
            self._changed.wait_for(lambda: not (self._holds_all or asked.record in self._held), _LONGEST_HOLD)
        status = self.status
        content = (
            _completion(request.content) if status == 200 else {"error": {"message": "out of order", "type": "error"}}
        )
        # The client tries again after a millisecond, not after its usual second.
        return status, {"Content-Type": "application/json", "Retry-After-Ms": "1"}, json.dumps(content).encode()


def _completion(request):
    task = request["messages"][-1]["content"]
    text = json.dumps({"answer": {part: _finding(part, task) for part in _PARTS.findall(task)[-1].split(", ")}})
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": request["model"],
        "choices": [
            {"index": place, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
            for place in range(request.get("n") or 1)
        ],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    }


def _finding(part, task):
    numbers = [int(number) for numbers in _NUMBERED.findall(task)[-1:] for number in numbers.split(",")]
    return {
        "grounding": {"reasoning": "stated", "verdict": "grounded"},
        "completeness": {"reasoning": "stated", "value": 1.0},
        "claims": ["It is so."],
        "judged_claims": {
            "claims": [{"claim": "It is so.", "reasoning": "stated", "verdict": "supported"}],
            "more": False,
        },
        "claim_verdicts": [{"number": number, "reasoning": "stated", "verdict": "supported"} for number in numbers],
        "context_verdicts": [{"number": number, "reasoning": "stated", "verdict": "useful"} for number in numbers],
    }[part]
