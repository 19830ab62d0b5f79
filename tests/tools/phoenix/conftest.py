"""A server on this machine that behaves as Phoenix 20.26 was seen to behave."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from servers.scores import ScoreServer
from writer_fixtures import ANSWER, Backend, bare_environment, deliver, make_writer, server  # noqa: F401 - fixtures

from ragspan.judges.judge_protocols import ContextVerdict
from ragspan.outcomes import Score, ScoredRecord
from ragspan.records import RagRecord, Retrieval, RetrievedContext, SpanAnchor
from ragspan.tools.phoenix import PhoenixEmitter

SEARCH = SpanAnchor(trace_id=0xA1, span_id=0xC3)
RECORDED = Path(__file__).with_name("recorded_traces.json")
"""What Phoenix 20.26.1 answered: two answers that ragspan traced, one of OpenInference's LangChain and one of its DSPy."""
PAGE = 3


class FakePhoenix(ScoreServer):
    """Takes annotations of the spans that it knows: the answer's, the search's with three documents, and recorded ones.

    `spans` has the number of documents of each span that has arrived, by its hexadecimal id; `stored` the rows, by what
    makes Phoenix replace one. The project `default` has what was recorded.
    """

    def __init__(self):
        self.recorded = json.loads(RECORDED.read_text())
        self.spans = {span["context"]["span_id"]: 0 for span in self.recorded["spans"]}
        self.span_names = []
        self.stored = {}
        self.add_span(ANSWER)
        self.add_span(SEARCH, documents=3)
        super().__init__()

    @property
    def rows(self):
        return list(self.stored.values())

    @property
    def scores(self):
        return {row["name"]: row["result"]["score"] for row in self.rows if "document_position" not in row}

    @property
    def number_of_scores(self):
        return len(self.stored)

    def add_span(self, span, documents=0):
        self.spans[format(span.span_id, "016x")] = documents

    def take_span(self, span, headers):
        """A span as an exporter sends it; how many documents it has is in its attributes."""
        self.span_names.append(span.name)
        keys = [pair.key for pair in span.attributes if pair.key.startswith("retrieval.documents.")]
        self.spans[span.span_id.hex()] = len({key.split(".")[2] for key in keys})

    def reply_to(self, request):
        if request.path.startswith("/v1/projects/"):
            return self._page_of(request.path, request.query)
        if request.path not in {"/v1/span_annotations", "/v1/document_annotations"}:
            return 404, '{"detail":"Not Found"}'
        assert request.query == {"sync": ["true"]}, "without it Phoenix keeps rows in memory, and says that it has them"
        rows = request.content["data"]
        if any(row["name"] in self.refused for row in rows):
            return 400, "The name is reserved"
        missing = {row["span_id"] for row in rows} - set(self.spans)
        if missing:
            return 404, f"Spans with IDs {', '.join(missing)} do not exist."
        for row in rows:
            documents = self.spans[row["span_id"]]
            if "document_position" in row and row["document_position"] not in range(documents):
                place = f"{row['document_position']} is out of bounds for span {row['span_id']} (max: {documents - 1})"
                return 422, f"Document position {place}"
        for row in rows:
            self.stored[row["span_id"], row["name"], row["identifier"], row.get("document_position")] = row
        return 200, {"data": [{"id": str(number)} for number in range(len(rows))]}

    def _page_of(self, path, query):
        """A page of what a project has."""
        _, _, _, project, kind = path.split("/")
        if project not in {"default", "empty"}:
            return 404, f"Project with identifier {project} not found"
        found = self.recorded[kind] if project == "default" else []
        for name, key in (
            ("trace_id", lambda row: row["context"]["trace_id"]),
            ("span_ids", lambda row: row["span_id"]),
            ("include_annotation_names", lambda row: row["name"]),
        ):
            found = [row for row in found if name not in query or key(row) in query[name]]
        if "start_time" in query:
            found = [row for row in found if row["start_time"] >= query["start_time"][0]]
        first = int(query.get("cursor", ["0"])[0])
        last = first + min(PAGE, int(query["limit"][0]))
        return 200, {"data": found[first:last], "next_cursor": str(last) if len(found) > last else None}


@pytest.fixture
def backend():
    return Backend(
        server=FakePhoenix,
        writer=PhoenixEmitter,
        address="base_url",
        arguments={"api_key": "secret-key", "identifier": "mine"},
        variables=lambda url: {"PHOENIX_COLLECTOR_ENDPOINT": url, "PHOENIX_API_KEY": "secret-key"},
        secret="secret-key",
    )


@pytest.fixture
def phoenix(server):  # noqa: F811 - the fixture
    return server


@pytest.fixture
def make_scored():
    """An answer whose search found three passages, of which the last two, the other way round, reached the prompt."""

    def make(outcomes=None, *, span=ANSWER, retrieval_spans=(SEARCH,), record_id="record-1", **given):
        found = tuple(RetrievedContext(text=f"passage {rank}", id=f"id-{rank}", rank=rank) for rank in range(3))
        record = RagRecord(
            question="q",
            contexts=[found[2], found[1]],
            response="r",
            record_id=record_id,
            retrievals=(Retrieval(name="store", query="q", started_ns=1, ended_ns=2, contexts=found),),
        )
        outcomes = {"faithfulness": Score(value=0.5, threshold=0.8)} if outcomes is None else outcomes
        fields = {"record": record, "outcomes": outcomes, "span": span, "retrieval_spans": retrieval_spans}
        return ScoredRecord(**{**fields, **given})

    return make


@pytest.fixture
def utilization():
    """A score that says of each of the two passages whether it was useful."""
    verdicts = (ContextVerdict(index=0, useful=True, explanation="cited"), ContextVerdict(index=1, useful=False))
    return Score(value=1.0, judge="overlap", evidence=verdicts)
