"""A server on this machine that takes scores as Langfuse's client 5.0.4 says that Langfuse does."""

from __future__ import annotations

import base64
import re
from datetime import datetime

import pytest
from servers.scores import ScoreServer
from writer_fixtures import Backend, bare_environment, deliver, make_scored, make_writer, server  # noqa: F401 - fixtures

from ragspan.tools.langfuse import LangfuseEmitter

_FIELDS = {
    "id": str,
    "traceId": str,
    "observationId": str,
    "name": str,
    "value": (float, int, str),
    "dataType": str,
    "comment": str,
    "metadata": dict,
    "environment": str,
    "timestamp": str,
}
"""Of a score, as far as we use them."""


def checked(score):
    """The score, if it is one that Langfuse takes."""
    assert set(score) <= set(_FIELDS)
    assert {"id", "name", "value", "traceId"} <= set(score), "without an id a score is accepted and not stored"
    for name, value in score.items():
        assert isinstance(value, _FIELDS[name]), name
    assert re.fullmatch(r"[0-9a-f]{32}", score["traceId"])
    assert re.fullmatch(r"[0-9a-f]{16}", score.get("observationId", "0" * 16))
    assert isinstance(score["value"], str) == (score["dataType"] == "CATEGORICAL")
    assert re.fullmatch(r"(?!langfuse)[a-z0-9_-]+", score.get("environment", "default"))
    return score


def checked_time(text):
    assert datetime.fromisoformat(text).utcoffset() is not None, "Langfuse refuses times without an offset"
    return text


class FakeLangfuse(ScoreServer):
    """`stored` has the scores by what makes Langfuse replace one."""

    def __init__(self):
        self.keys = b"pk-lf-1:sk-lf-secret"
        self.stored = {}
        super().__init__()

    @property
    def scores(self):
        return {score["name"]: score["value"] for score in self.stored.values()}

    @property
    def number_of_scores(self):
        return len(self.stored)

    def reply_to(self, request):
        if request.headers.get("authorization") != "Basic " + base64.b64encode(self.keys).decode():
            return 401, {"message": "Invalid credentials"}
        if request.path == "/api/public/scores":
            return self._take_list(request.content)
        return 404, {"message": "Not found"}

    def _take_list(self, scores):
        taken = [score for score in scores if score["name"] not in self.refused]
        for score in taken:
            timestamp = checked_time(score["timestamp"])
            self.stored[score["id"], score["name"], timestamp[:10]] = {**checked(score), "timestamp": timestamp}
        if len(taken) == len(scores):
            return 202, {"message": "Accepted"}
        errors = [{"message": f"{score['name']}: refused"} for score in scores if score not in taken]
        return 207, {"accepted": len(taken), "rejected": len(errors), "errors": errors}


@pytest.fixture
def backend():
    return Backend(
        server=FakeLangfuse,
        writer=LangfuseEmitter,
        address="base_url",
        arguments={"public_key": "pk-lf-1", "secret_key": "sk-lf-secret"},
        variables=lambda url: {
            "LANGFUSE_BASE_URL": url,
            "LANGFUSE_PUBLIC_KEY": "pk-lf-1",
            "LANGFUSE_SECRET_KEY": "sk-lf-secret",
        },
        needed="LANGFUSE_PUBLIC_KEY",
        secret="sk-lf-secret",
    )
