"""A chat endpoint on this machine, for everything that is tested through the real `openai` client."""

from __future__ import annotations

import json
import re
import threading
from collections import defaultdict

from servers.http import LocalHttp

_PATHS = ("/chat/completions", "/embeddings", "/responses", "/lettucedetect/spans")


class FakeOpenAI(LocalHttp):
    """An OpenAI-compatible endpoint that answers as a test tells it to.

    `script` gives the replies to each kind of question, one for each choice, in order; a string is sent as it is and
    anything else as the JSON that the judge expects. `answer` can be set to a function from the request's body to what
    `says` or `fails` return.
    """

    def __init__(self, **options):
        self.answer = self._follow_script
        self.reply_headers = {"Retry-After-Ms": "1"}
        self.cuts_replies = False  # True closes the connection in the middle of each reply's body
        self.requests = []
        self.headers = []
        self.paths = []
        self.troubles = []
        self.choices_per_request = None
        self._script = defaultdict(list)
        self._lock = threading.Lock()
        super().__init__(self._reply_to, **options)
        self.base_url = f"{self.url}/v1"

    def script(self, **replies):
        for question, texts in replies.items():
            self._script[question] += texts

    def says(self, *texts, usage=None, finish_reason="stop", refusal=None):
        choices = [
            {
                "index": index,
                "finish_reason": finish_reason,
                "message": {"role": "assistant", "content": text, "refusal": refusal},
            }
            for index, text in enumerate(texts)
        ]
        body = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "choices": choices}
        return 200, body | ({"usage": usage} if usage else {})

    def streams(self, text):
        """What `says` returns, as a client reads it that asked for a stream."""
        shared = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        deltas = [({"role": "assistant", "content": word}, None) for word in re.findall(r"\S+\s*", text)]
        chunks = [
            shared | {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
            for delta, reason in [*deltas, ({}, "stop")]
        ]
        return 200, "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks).encode() + b"data: [DONE]\n\n"

    def fails(self, status, message, param=None, code=None):
        return status, {"error": {"message": message, "type": "error", "param": param, "code": code}}

    def hangs(self):
        """Does not answer before the test is over."""
        self.hold()
        return self.fails(500, "released")

    def question(self, request):
        """The kind of question that a request asks, as the form of the reply at its end names it."""
        return re.findall(r'\{"answer": \{"(\w+)"', request["messages"][-1]["content"])[-1]

    def _follow_script(self, request):
        question = self.question(request)
        count = self.choices_per_request or request.get("n", 1)
        with self._lock:
            replies = [self._script[question].pop(0) for _ in range(count)]
        return self.says(*(self._text(question, reply) for reply in replies))

    def _text(self, question, reply):
        return reply if isinstance(reply, str) else json.dumps({"answer": {question: reply}})

    def _reply_to(self, request):
        if not request.path.endswith(_PATHS):
            return 404, {}, b""  # to a program of another test, which had this port's former server
        asked = request.content
        self.requests.append(asked)
        self.headers.append(request.headers)
        self.paths.append(request.path)
        try:
            status, body = self.answer(asked)
        except Exception as error:
            self.troubles.append(error)
            status, body = self.fails(500, "the test has no answer")
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        kind = "text/event-stream" if asked.get("stream") else "application/json"
        headers = {"Content-Type": kind, "Content-Length": len(content), **self.reply_headers}
        if self.cuts_replies:
            return status, headers | {"Connection": "close"}, content[: len(content) // 2]
        return status, headers, content
