"""A server on this machine that takes runs and feedback as LangSmith's client sends them, and gives back the feedback."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from langsmith.integrations.otel import langsmith_run_id_from_otel_span_id
from langsmith.schemas import FeedbackCreate
from servers.scores import ScoreServer
from writer_fixtures import Backend, bare_environment, deliver, make_scored, make_writer, server  # noqa: F401 - fixtures

from ragspan.tools.langsmith import LangSmithEmitter

RUN = "00000000-0000-0000-0000-0000000000b2"
PROJECT = "11111111-1111-4111-8111-111111111111"
INFO = {
    "version": "0.13.0",
    "batch_ingest_config": {
        "use_multipart_endpoint": False,
        "size_limit": 100,
        "size_limit_bytes": 20_000_000,
        "scale_up_nthreads_limit": 16,
        "scale_up_qsize_trigger": 1000,
        "scale_down_nempty_trigger": 4,
    },
}
FEEDBACK = {"id", "run_id", "session_id", "key", "score", "value", "comment", "error", "feedback_source"}
NOT_FOUND = 404, {"detail": "Run not found"}


class FakeLangSmith(ScoreServer):
    """`runs` are the ids of the runs that have arrived; `feedback` what it has, by id.

    With `refuses_known_ids` a second feedback with the same id is a conflict, else it
    replaces the first.
    """

    def __init__(self):
        self.key = "ls-secret"
        self.runs = {RUN}
        self.posted = []
        self.feedback = {}
        self.refuses_known_ids = False
        self.projects = {"support": PROJECT}
        super().__init__()

    @property
    def scores(self):
        return {feedback["key"]: feedback["score"] for feedback in self.feedback.values()}

    @property
    def number_of_scores(self):
        return len(self.feedback)

    def reply_to(self, request):
        if request.headers.get("x-api-key") != self.key:
            return 401, {"detail": "Invalid token"}
        match request.method, request.path:
            case "GET", "/info":
                return 200, INFO
            case "POST", "/runs/batch":
                self.posted += request.content.get("post", [])
                self.runs |= {run["id"] for run in self.posted}
                return 202, {}
            case "GET", "/sessions":
                (name,) = request.query["name"]
                return 200, [{"id": id_, "name": own} for own, id_ in self.projects.items() if own == name]
            case "POST", "/feedback":
                return self._create(request.content)
            case "GET", "/feedback":
                found = [one for one in self.feedback.values() if one["run_id"] in request.query["run"]]
                return 200, found if request.query.get("offset", ["0"]) == ["0"] else []
            case "PATCH", path if path.startswith("/feedback/"):
                return self._change(path.rpartition("/")[2], request.content)
        return 404, "<h1>Not Found</h1>"

    def take_span(self, span, headers):
        self.runs.add(str(langsmith_run_id_from_otel_span_id(span.span_id)))

    def _create(self, content):
        assert set(content) <= FEEDBACK
        FeedbackCreate.model_validate({"trace_id": None, **content})
        assert content["feedback_source"]["type"] in {"api", "model"}
        assert content.get("session_id") in {None, PROJECT}
        if content["key"] in self.refused:
            return 422, {"detail": "unprocessable"}
        if content["run_id"] not in self.runs:
            return NOT_FOUND
        if self.refuses_known_ids and content["id"] in self.feedback:
            return 409, {"detail": "already exists"}
        now = datetime.now(timezone.utc).isoformat()
        self.feedback[content["id"]] = {**content, "trace_id": None, "created_at": now, "modified_at": now}
        return 200, self.feedback[content["id"]]

    def _change(self, feedback_id, content):
        assert set(content) <= {"score", "value", "comment", "correction"}
        self.feedback[feedback_id] |= content
        return 200, self.feedback[feedback_id]


@pytest.fixture
def backend():
    return Backend(
        server=FakeLangSmith,
        writer=LangSmithEmitter,
        address="api_url",
        arguments={"api_key": "ls-secret"},
        variables=lambda url: {
            "LANGSMITH_ENDPOINT": url,
            "LANGSMITH_API_KEY": "ls-secret",
            "LANGSMITH_PROJECT": "support",
        },
        needed="LANGSMITH_API_KEY",
        secret="ls-secret",
    )
