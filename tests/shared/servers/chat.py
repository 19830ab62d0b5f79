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
        """The kind of question that a request asks, as the form of the reply at its end names it; the first of several."""
        return re.findall(r'\{"answer": \{"(\w+)"', request["messages"][-1]["content"])[-1]

    def parts(self, request):
        """The parts that a request about several questions asks for; none for a request that asks one."""
        named = re.findall(
            r"^Task: reply with the parts? ([\w, ]+?)(?: alone)?\.$", request["messages"][-1]["content"], re.MULTILINE
        )
        return named[-1].split(", ") if named else []

    def _follow_script(self, request):
        count = self.choices_per_request or request.get("n", 1)
        parts = self.parts(request)
        with self._lock:
            if parts:
                return self.says(*self._together(parts, count))
            question = self.question(request)
            replies = [self._script[question].pop(0) for _ in range(count)]
        return self.says(*(self._text(question, reply) for reply in replies))

    def _together(self, parts, count):
        """A reply with these parts for each choice; what is not voted on is in all choices the same."""
        voted = {"grounding", "completeness", "answer_relevance"}
        same = {part: self._reply_of(part) for part in parts if part not in voted}
        choices = [
            {part: same[part] if part in same else self._script[part].pop(0) for part in parts} for _ in range(count)
        ]
        return [json.dumps({"answer": choice}) for choice in choices]

    def _reply_of(self, part):
        if part != "judged_claims" or self._script[part]:
            return self._script[part].pop(0)
        claims, verdicts = self._script["claims"].pop(0), self._script["claim_verdicts"]
        by_number = {one["number"]: one for one in verdicts.pop(0)} if claims else {}
        judged = [
            {"claim": claim, "reasoning": by_number[number]["reasoning"], "verdict": by_number[number]["verdict"]}
            for number, claim in enumerate(claims, start=1)
        ]
        return {"claims": judged, "more": False}

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
        return status, headers, content
