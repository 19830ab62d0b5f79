from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass

import pytest

from ragspan.outcomes import Score, ScoredRecord
from ragspan.records import RagRecord, SpanAnchor
from ragspan.tools import Delivered, DeliveryOptions, ScoreWriter, Sender
from ragspan.tools.http import Endpoint


@dataclass(frozen=True)
class Letter:
    """Something to deliver."""

    text: str
    size: int = 100


class Mailbox:
    """A backend that does as its script says, a reply a batch, and takes everything once that is used up.

    A reply is what `write` returns, an exception to raise, or a function of the batch that does either.
    """

    def __init__(self):
        self.script = deque()
        self.batches = []
        self.delivered = []
        self.threads = set()

    def write(self, batch):
        self.batches.append([item.text for item in batch])
        self.threads.add(threading.current_thread().name)
        reply = self.script.popleft() if self.script else [Delivered()] * len(batch)
        if callable(reply):
            reply = reply(batch)
        if isinstance(reply, BaseException):
            raise reply
        self.delivered += [item.text for item, result in zip(batch, reply or (), strict=False) if result == Delivered()]
        return reply


class PostOffice(ScoreWriter):
    """A writer that writes a letter for each score."""

    name = "post"

    def __init__(self, **given):
        self.mailbox = Mailbox()
        super().__init__(**{"delivery": DeliveryOptions(linger=0.0), **given})

    def server(self):
        return Endpoint(url="http://localhost")

    def items_of(self, scored, span):
        return [
            Letter(f"{metric}={outcome.value}")
            for metric, outcome in scored.outcomes.items()
            if isinstance(outcome, Score)
        ]

    def write(self, batch):
        return self.mailbox.write(batch)


@pytest.fixture
def make_queue(clock):
    """A sender without threads and jitter, whose items are due at once unless the test says otherwise."""

    def make(write=None, **options):
        given = DeliveryOptions(**{"linger": 0.0, **options})
        return Sender(given, write=write, name="post", threads=0, draw=lambda: 0.0, clock=clock)

    return make


@pytest.fixture
def post_office(make_post_office):
    return make_post_office()


@pytest.fixture
def make_scored():
    """An answer with these scores, whose span is sampled."""

    def make(span_id=0xB2, *, trace_flags=1, late=False, **scores):
        return ScoredRecord(
            record=RagRecord(question="q", contexts=[], response="r"),
            outcomes={metric: Score(value=value) for metric, value in scores.items()},
            span=SpanAnchor(trace_id=0xA1, span_id=span_id, trace_flags=trace_flags),
            late=late,
        )

    return make


@pytest.fixture
def letters():
    return lambda texts: [Letter(text) for text in texts]


@pytest.fixture
def make_post_office():
    writers = []

    def make(**given):
        writers.append(PostOffice(**given))
        return writers[-1]

    yield make
    for writer in writers:
        writer.shutdown(5)
