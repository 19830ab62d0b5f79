"""A chat client over a model that is called synchronously, as all chat models of frameworks can be."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextvars import Context
from typing import Any

from ragspan.exceptions import JudgeError
from ragspan.judges.judge_protocols import ChatMessage, Completion
from ragspan.judges.llm.capabilities import EndpointCapabilities
from ragspan.judges.llm.requests import is_outage, redacted_message, status_of


class BlockingChatClient(ABC):
    """A `ChatClient` that makes a request for each completion, side by side, in threads of the running loop's executor.

    An asynchronous client inside a chat model belongs to one event loop: if the judge's loop used it, it would fail in the
    application's, and the other way round. If the model rejects a parameter (a schema, a temperature) and answers without it,
    later requests leave it out.

    Each call runs in an empty context of its own: the caller's callbacks, tracers and spans do not see it. A cancelled call that
    has no thread yet is never made. An exception in a call costs that one completion; `complete` raises only if all calls fail.

    Args:
        model: a framework's, of pydantic; it is copied.
        apart: fields that the copy has instead, such as its callbacks.
    """

    def __init__(self, model: Any, **apart: Any) -> None:
        self.capabilities = EndpointCapabilities(left_out=frozenset({"n"}))
        """What the model is known to take."""
        self._model = model.model_copy(update=apart)
        self._at_temperature: dict[float, Any] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self._model).__name__})"

    @abstractmethod
    def ask(
        self,
        messages: Sequence[ChatMessage],
        *,
        schema: Mapping[str, Any],
        temperature: float,
        capabilities: EndpointCapabilities,
    ) -> Completion:
        """Ask the model once, with schema and temperature if the capabilities have them. May raise anything."""

    def model_at(self, temperature: float, capabilities: EndpointCapabilities) -> Any:
        """The model at this temperature, if it has one. Copies are kept: many open their connections late."""
        if not capabilities.takes("temperature") or "temperature" not in type(self._model).model_fields:
            return self._model
        if temperature not in self._at_temperature:
            self._at_temperature[temperature] = self._model.model_copy(update={"temperature": temperature})
        return self._at_temperature[temperature]

    def secrets(self) -> Iterable[object]:
        """Known keys, which must not appear in messages."""
        for name, value in vars(self._model).items():
            if hasattr(value, "get_secret_value"):  # of pydantic
                yield value.get_secret_value()
            elif "key" in name or "token" in name:
                yield value

    async def complete(
        self, messages: Sequence[ChatMessage], *, schema: Mapping[str, Any], n: int, temperature: float
    ) -> list[Completion]:
        def answer() -> Completion | JudgeError:
            """Ask, and each time that the model refuses a parameter, ask again without it."""
            taken = self.capabilities
            while True:
                sent = taken.parameters(schema=schema, n=n, temperature=temperature)
                try:
                    completion = self.ask(messages, schema=schema, temperature=temperature, capabilities=taken)
                except Exception as error:  # noqa: BLE001  each integration has errors of its own
                    simpler = taken.after(error, sent)
                    if simpler is None:
                        texts = [message["content"] for message in messages]
                        words, kind = redacted_message(error, texts, secrets=self.secrets()), type(error).__name__
                        return JudgeError(kind, words, outage=is_outage(error), status=status_of(error))
                    taken = simpler
                else:
                    self.capabilities = self.capabilities.merged_with(taken)
                    return completion

        loop = asyncio.get_running_loop()
        answers = await asyncio.gather(*(loop.run_in_executor(None, Context().run, answer) for _ in range(n)))
        completions = [answer for answer in answers if isinstance(answer, Completion)]
        if not completions:
            raise next(answer for answer in answers if isinstance(answer, JudgeError))
        return completions
