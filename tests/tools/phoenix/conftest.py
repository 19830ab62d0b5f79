"""A server on this machine that behaves as Phoenix 20.26 was seen to behave."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from servers.scores import ScoreServer
from writer_fixtures import ANSWER, Backend, bare_environment, deliver, make_scored, make_writer, server  # noqa: F401 - fixtures

from ragspan.tools.phoenix import PhoenixEmitter

RECORDED = Path(__file__).with_name("recorded_traces.json")
"""What Phoenix 20.26.1 answered: two answers that ragspan traced, one of OpenInference's LangChain and one of its DSPy."""
PAGE = 3


class FakePhoenix(ScoreServer):
    """Takes annotations of the spans that it knows, the answer's and recorded ones.

    `spans` has the hexadecimal ids; `stored` the rows, by what makes Phoenix replace one; `kept` those that it keeps in memory for
    spans that have not come. The project `default` has what was recorded.
    """

    def __init__(self):
        self.recorded = json.loads(RECORDED.read_text())
        self.spans = {span["context"]["span_id"] for span in self.recorded["spans"]}
        self.span_names = []
        self.stored = {}
        self.kept = []
        self.add_span(ANSWER)
        super().__init__()

    @property
    def rows(self):
        return list(self.stored.values())

    @property
    def scores(self):
        return {row["name"]: row["result"]["score"] for row in self.rows}

    @property
    def number_of_scores(self):
        return len(self.stored)

    def add_span(self, span):
        self.spans.add(format(span.span_id, "016x"))

    def take_span(self, span, headers):
        self.span_names.append(span.name)
        self.spans.add(span.span_id.hex())

    def reply_to(self, request):
        if request.path.startswith("/v1/projects/"):
            return self._page_of(request.path, request.query)
        if request.path != "/v1/span_annotations":
            return 404, '{"detail":"Not Found"}'
        rows = request.content["data"]
        if any(row["name"] in self.refused for row in rows):
            return 400, "The name is reserved"
        if request.query == {"sync": ["false"]}:
            self.kept += rows
            return 200, {"data": []}
        missing = {row["span_id"] for row in rows} - self.spans
        if missing:
            return 404, f"Spans with IDs {', '.join(missing)} do not exist."
        for row in rows:
            self.stored[row["span_id"], row["name"], row["identifier"]] = row
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
        arguments={"api_key": "secret-key"},
        variables=lambda url: {"PHOENIX_COLLECTOR_ENDPOINT": url, "PHOENIX_API_KEY": "secret-key"},
        secret="secret-key",
    )


@pytest.fixture
def phoenix(server):  # noqa: F811 - the fixture
    return server
