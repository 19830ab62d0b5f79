from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest
from whole_records import WholeRecords

from ragspan.judges.judge_protocols import Completion
from ragspan.judges.llm import EndpointCapabilities, LLMJudge
from ragspan.usage import Usage


class ScriptedClient:
    """Answers each request with the next list of texts, or raises it if it is an error, and notes what it is asked."""

    def __init__(self, *answers, choices=True):
        self._answers = list(answers)
        self.capabilities = EndpointCapabilities(left_out=frozenset() if choices else frozenset({"n"}))
        self.requests, self.at_once, self._open = [], [], 0

    async def complete(self, messages, *, schema, n, temperature):
        self.requests.append({"messages": messages, "schema": schema, "n": n, "temperature": temperature})
        self._open += 1
        self.at_once.append(self._open)
        for _ in range(5):  # as real ones wait for an answer
            await asyncio.sleep(0)
        self._open -= 1
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return [Completion(text=text, usage=Usage(requests=1, output_tokens=7)) for text in answer]

    @property
    def prompts(self):
        return ["\n".join(message["content"] for message in request["messages"]) for request in self.requests]

    @property
    def tasks(self):
        """What stands after the material in each request."""
        return [prompt[prompt.index("<<<end of response") :].partition("\n")[2] for prompt in self.prompts]


WHOLE = WholeRecords(Path(__file__).with_name("whole_requests.json"))
CODE = re.compile(r"\b[0-9a-f]{20}\b")


@pytest.fixture
def scripted(request):
    """Makes a judge over a client with a script; gives both. All that it asks, but for the rules and the material, is known."""
    clients = []

    def make(*answers, choices=True, **options):
        clients.append(ScriptedClient(*answers, choices=choices))
        return LLMJudge(clients[-1], name="scripted", **options), clients[-1]

    yield make
    asked = [
        [
            CODE.sub("code", task),
            request["n"],
            request["temperature"],
            sorted(request["schema"]["properties"]["answer"].get("properties", ())),
        ]
        for client in clients
        for task, request in zip(client.tasks, client.requests, strict=True)
        if len(task) < 2000
    ]
    if request.path.stem != "test_attacks":  # which has its own ways with requests
        known, found = WHOLE.told(f"{request.path.stem} {request.node.name}", asked)
        assert found == known


@pytest.fixture
def reply():
    """Makes the JSON text of a reply."""

    def make(**answer):
        return json.dumps({"answer": answer})

    return make


@pytest.fixture
def vote(reply):
    def make(verdict="grounded"):
        return reply(grounding={"reasoning": "because", "verdict": verdict})

    return make
