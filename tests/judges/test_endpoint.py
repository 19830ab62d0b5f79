"""What the real `openai` client sends where, and what it logs of an address."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from http.client import parse_headers

import pytest
from servers.raw import RawServer

from ragspan.exceptions import JudgeError
from ragspan.judges.openai import OpenAIJudge

ANSWER = json.dumps({"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]}).encode()
PROMPT = [{"role": "user", "content": "When is it?"}]


class Endpoint(RawServer):
    """Answers as a test tells it to: with `status`, `headers` and `chunks`, which may be endless."""

    def __init__(self):
        self.status, self.headers, self.chunks = 200, {}, lambda: [ANSWER]
        super().__init__(self._answer_to)

    @property
    def asked(self):
        """The path and the headers of each request."""
        lines = [request.partition(b"\r\n") for request in self.requests]
        return [(first.split()[1].decode(), parse_headers(io.BytesIO(rest))) for first, _, rest in lines]

    def _answer_to(self):
        told = {"Content-Type": "application/json", "Connection": "close", **self.headers}
        lines = [f"HTTP/1.1 {self.status} so", *(f"{name}: {value}" for name, value in told.items())]
        yield "\r\n".join([*lines, "\r\n"]).encode()
        yield from self.chunks()


@pytest.fixture
def endpoint(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with Endpoint() as server:
        yield server


def ask(endpoint, *, at="", credentials="", query="", **options):
    url = f"http://{credentials}127.0.0.1:{endpoint.port}{at}{query}"
    return text_by(OpenAIJudge("m", **{"base_url": url, "api_key": "sk-key-1234", "max_retries": 0, **options}))


def text_by(judge):
    [completion] = asyncio.run(judge.client.complete(PROMPT, schema={}, n=1, temperature=0.0))
    return completion.text


@pytest.mark.parametrize(("status", "asked"), [*((one, 3) for one in (408, 409, 429, 500, 503)), (400, 1), (401, 1)])
def test_what_may_pass_is_asked_again_as_often_as_max_retries_says(endpoint, status, asked):
    endpoint.status, endpoint.headers = status, {"retry-after-ms": "1"}
    with pytest.raises(JudgeError, match=f"HTTP {status}"):
        ask(endpoint, max_retries=2)

    assert len(endpoint.asked) == asked


def test_no_byte_of_the_texts_follows_a_redirect(endpoint):
    with Endpoint() as other:
        endpoint.status, endpoint.headers = 307, {"Location": f"http://localhost:{other.port}/v1/x"}
        with pytest.raises(JudgeError, match=r"HTTP 307.*give base_url=") as failure:
            ask(endpoint)

    assert other.asked == []
    assert failure.value.outage


def test_no_credentials_of_an_address_are_logged(endpoint, caplog):
    with caplog.at_level(logging.DEBUG):
        assert ask(endpoint, credentials="bob:pa55w0rd@", at="/T0KEN1/v1", query="?apikey=qu3ry") == "yes"

    path, headers = endpoint.asked[0]
    assert path == "/T0KEN1/v1/chat/completions?apikey=qu3ry"
    assert headers["Authorization"] == "Basic Ym9iOnBhNTV3MHJk"
    assert "127.0.0.1" in caplog.text  # the client logs its requests
    assert not [secret for secret in ("pa55w0rd", "Ym9iOnBh", "sk-key-1234") if secret in caplog.text]


def test_an_endpoint_that_echoes_what_it_got_gives_no_secret_away(endpoint):
    echo = "Basic Ym9iOnBhNTV3MHJk of bob:pa55w0rd at /T0KEN1/v1/chat/completions?apikey=qu3ry with sk-key-1234"
    endpoint.status, endpoint.chunks = 401, lambda: [json.dumps({"error": {"message": echo}}).encode()]

    with pytest.raises(JudgeError) as failure:
        ask(endpoint, credentials="bob:pa55w0rd@", at="/T0KEN1/v1", query="?apikey=qu3ry")

    message = str(failure.value)
    assert not [secret for secret in ("pa55w0rd", "T0KEN1", "qu3ry", "Ym9iOnBh", "sk-key-1234") if secret in message]
    assert "at /[key]/v1/chat/completions" in message
