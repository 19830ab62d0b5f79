"""An OpenAI-compatible endpoint with good days and bad ones.

    python -m soaking.judge_endpoint [--seed 1]

It draws what becomes of each request, and tells with `GET /counts` how often it drew what.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
from collections import Counter
from http import HTTPStatus
from typing import Any

from serving.listening import Exchange, listen

FATES = {
    "answered": 66,
    "answered slowly": 14,
    "429": 4,
    "429 with Retry-After": 3,
    "500": 4,
    "hung": 2,
    "cut": 3,
    "nonsense": 2,
    "empty": 2,
}
"""What can become of a request, with its weight."""
_FORM = re.compile(r'\{"answer": \{"(\w+)"')
_NUMBERS = re.compile(r"one verdict for each of these numbers: ([\d, ]+)")


class Endpoint:
    """Answers requests as it draws."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._counts: Counter[str] = Counter()

    async def respond(self, exchange: Exchange) -> None:
        if exchange.method == "GET":
            await exchange.answer(json.dumps(self._counts).encode())
            return
        [fate] = self._random.choices(list(FATES), list(FATES.values()))
        self._counts[fate] += 1
        await self._answer(fate, exchange)

    async def _answer(self, fate: str, exchange: Exchange) -> None:
        request = json.loads(exchange.body)
        match fate:
            case "hung":
                await exchange.until_hung_up()
            case "cut":
                await exchange.answer(self._completion(request), cut_after=100)
            case "500":
                await exchange.answer(_error("out of order"), status=HTTPStatus.INTERNAL_SERVER_ERROR)
            case "429" | "429 with Retry-After":
                headers = "Retry-After: 1\r\n" if "Retry-After" in fate else ""
                await exchange.answer(_error("slow down"), status=HTTPStatus.TOO_MANY_REQUESTS, headers=headers)
            case "nonsense" | "empty":
                await exchange.answer(_body("I would rather not." if fate == "nonsense" else "", request.get("n", 1)))
            case _:
                await asyncio.sleep(self._random.uniform(0.005, 0.05) if fate == "answered" else 1.0)
                await exchange.answer(self._completion(request))

    def _completion(self, request: dict[str, Any]) -> bytes:
        task = request["messages"][-1]["content"]
        form = _FORM.findall(task)[-1]
        found = _NUMBERS.search(task)
        numbers = [int(number) for number in found[1].split(",")] if found else []
        return _body(json.dumps({"answer": {form: self._verdict(form, numbers)}}), request.get("n", 1))

    def _verdict(self, form: str, numbers: list[int]) -> Any:
        draw = self._random.choice
        match form:
            case "grounding":
                return {"reasoning": "as drawn", "verdict": draw(["grounded", "not_grounded"])}
            case "completeness":
                return {"reasoning": "as drawn", "value": draw([0.0, 0.5, 1.0])}
            case "claims":
                return ["Beta settles card payments.", "It is done every night."]
            case "claim_verdicts":
                menu = ["supported", "unsupported"]
            case _:
                menu = ["useful", "not_useful"]
        return [{"number": number, "reasoning": "as drawn", "verdict": draw(menu)} for number in numbers]


def _body(text: str, choices: int) -> bytes:
    message = {"role": "assistant", "content": text}
    return json.dumps(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "drawn",
            "choices": [{"index": place, "finish_reason": "stop", "message": message} for place in range(choices)],
            "usage": {"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020},
        }
    ).encode()


def _error(message: str) -> bytes:
    return json.dumps({"error": {"message": message, "type": "error", "param": None, "code": None}}).encode()


def main() -> None:
    parser = argparse.ArgumentParser(description="Answers, or does not, as it draws.")
    parser.add_argument("--seed", type=int, default=1)
    asyncio.run(listen(0, Endpoint(parser.parse_args().seed).respond))


if __name__ == "__main__":
    main()
