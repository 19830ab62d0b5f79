"""A chat client over a model that is asked by a call that blocks, as the chat models of frameworks can all be.

Guarantees:
- Each call runs in a thread of the running loop's executor. What asynchronous clients inside a chat model hold open belongs
  to one event loop: asked in the judge's loop, the model would fail in the application's, and the other way round.
- Each call runs in a context of its own, empty at first. Callbacks, tracers and spans of whoever asks do not see it.
- A call that nobody waits for any more and that has found no thread yet is never made.
- What a call raises costs that one completion; all of them have to fail before it is an error.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextvars import Context
from typing import Any

from ragspan.exceptions import JudgeError
from ragspan.judges.base import ChatMessage, Completion
from ragspan.judges.llm.dialect import Dialect
from ragspan.judges.llm.discretion import discreet
from ragspan.judges.llm.outage import is_outage


class BlockingChatClient(ABC):
    """A `ChatClient` whose completions are requests of their own, side by side.

    What the model turns out not to understand (schemas, temperatures) is left out once it has answered without.
    """

    def __init__(self) -> None:
        self._dialect = Dialect(several_choices=False)

    @abstractmethod
    def ask(
        self, messages: Sequence[ChatMessage], *, schema: Mapping[str, Any], temperature: float, dialect: Dialect
    ) -> Completion:
        """Ask the model once, with as much of schema and temperature as the dialect has. May raise anything."""

    def secrets(self) -> Iterable[object]:
        """Keys that must not appear in messages, as far as they are known."""
        return ()

    async def complete(
        self, messages: Sequence[ChatMessage], *, schema: Mapping[str, Any], n: int, temperature: float
    ) -> list[Completion]:
        def answer() -> Completion | JudgeError:
            return self._answer(messages, self._dialect, schema=schema, temperature=temperature)

        loop = asyncio.get_running_loop()
        calls = [loop.run_in_executor(None, Context().run, answer) for _ in range(n)]
        answers = await asyncio.gather(*calls)
        completions = [answer for answer in answers if isinstance(answer, Completion)]
        errors = [answer for answer in answers if isinstance(answer, JudgeError)]
        if errors and not completions:
            raise errors[0]
        return completions

    def _answer(
        self, messages: Sequence[ChatMessage], dialect: Dialect, *, schema: Mapping[str, Any], temperature: float
    ) -> Completion | JudgeError:
        """Ask, again and again with less until the model no longer complains about what it is given beside the prompt."""
        try:
            completion = self.ask(messages, schema=schema, temperature=temperature, dialect=dialect)
        except Exception as error:  # noqa: BLE001  each integration has errors of its own
            simpler = _simpler(dialect, error)
            if simpler is None:
                sent = [message["content"] for message in messages]
                words = discreet(error, sent, secrets=self.secrets())
                return JudgeError(type(error).__name__, words, outage=is_outage(error))
        else:
            self._dialect = dialect
            return completion
        return self._answer(messages, simpler, schema=schema, temperature=temperature)


def _simpler(dialect: Dialect, error: Exception) -> Dialect | None:
    """What is left of a dialect after this complaint; None if it is none, or about something else."""
    status = getattr(error, "status_code", None)
    if isinstance(status, int) and status not in _COMPLAINTS:
        return None
    parameter = getattr(error, "param", None)
    return dialect.without(str(error), parameter if isinstance(parameter, str) else None)


_COMPLAINTS = {400, 404, 422}  # a proxy answers 404 when no model behind it takes the parameters
