"""What tests of several parts share: how Hypothesis runs, and an OTLP endpoint on this machine."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints

import hypothesis
import pytest
from local_http import LocalHttp
from received_spans import spans_in
from shared_judging import Labels

from ragspan import installed

hypothesis.settings.register_profile("ragspan", deadline=None, derandomize=True)  # a slow machine is no wrong answer
hypothesis.settings.load_profile("ragspan")


class OtlpListener(LocalHttp):
    """Takes OTLP over HTTP on this machine, and answers as a test tells it to.

    `answer` is a function from the path of a request to a status, headers and a body.
    """

    def __init__(self, **options):
        self.answers(200, Content_Type="application/x-protobuf")
        self.requests = []
        self.headers = []
        self.spans = []
        self.labels = Labels()
        super().__init__(self._answer, **options)

    def answers(self, status, body=b"", **headers):
        self.answer = lambda _path: (status, {name.replace("_", "-"): text for name, text in headers.items()}, body)

    def hangs(self):
        """Does not answer before the test is over."""
        self.answer = self.hold

    def _answer(self, request):
        self.headers.append(request.headers)
        self.requests.append(request.path)
        if "traces" in request.path:
            self.spans += spans_in(request.body)
        if "metrics" in request.path:
            self.labels.add(request.body)
        return self.answer(request.path)


@pytest.fixture
def make_otlp_listener(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "*")
    made = []

    def make(**options):
        made.append(OtlpListener(**options))
        return made[-1]

    yield make
    for listener in made:
        listener.close()


@pytest.fixture
def otlp_listener(make_otlp_listener):
    return make_otlp_listener()


@pytest.fixture
def register(monkeypatch):
    """Registers entry points of a group for the duration of the test, and no others."""

    def register(group, **entries):
        found = [EntryPoint(name, value, group) for name, value in entries.items()]
        monkeypatch.setattr(installed, "entry_points", EntryPoints(found).select)

    return register
