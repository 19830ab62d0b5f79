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
from ragspan.judges.llm.chat_protocol import EndpointCapabilities
from ragspan.judges.llm.errors import is_outage, redacted_message
from ragspan.outcomes import Usage
from ragspan.provider_replies import facts_of


class BlockingChatClient(ABC):
    """A `ChatClient` whose completions are requests of their own, side by side.

    What the model turns out not to understand (schemas, temperatures) is left out once it has answered without.
    """

    def __init__(self) -> None:
        self._capabilities = EndpointCapabilities(several_choices=False)

    @abstractmethod
    def ask(
        self,
        messages: Sequence[ChatMessage],
        *,
        schema: Mapping[str, Any],
        temperature: float,
        capabilities: EndpointCapabilities,
    ) -> Completion:
        """Ask the model once, with as much of schema and temperature as the capabilities has. May raise anything."""

    def secrets(self) -> Iterable[object]:
        """Keys that must not appear in messages, as far as they are known."""
        return ()

    async def complete(
        self, messages: Sequence[ChatMessage], *, schema: Mapping[str, Any], n: int, temperature: float
    ) -> list[Completion]:
        def answer() -> Completion | JudgeError:
            return self._answer(messages, self._capabilities, schema=schema, temperature=temperature)

        loop = asyncio.get_running_loop()
        calls = [loop.run_in_executor(None, Context().run, answer) for _ in range(n)]
        answers = await asyncio.gather(*calls)
        completions = [answer for answer in answers if isinstance(answer, Completion)]
        errors = [answer for answer in answers if isinstance(answer, JudgeError)]
        if errors and not completions:
            raise errors[0]
        return completions

    def _answer(
        self,
        messages: Sequence[ChatMessage],
        capabilities: EndpointCapabilities,
        *,
        schema: Mapping[str, Any],
        temperature: float,
    ) -> Completion | JudgeError:
        """Ask, again and again with less until the model no longer complains about what it is given beside the prompt."""
        try:
            completion = self.ask(messages, schema=schema, temperature=temperature, capabilities=capabilities)
        except Exception as error:  # noqa: BLE001  each integration has errors of its own
            simpler = _simpler(capabilities, error)
            if simpler is None:
                sent = [message["content"] for message in messages]
                words = redacted_message(error, sent, secrets=self.secrets())
                return JudgeError(type(error).__name__, words, outage=is_outage(error))
        else:
            self._capabilities = capabilities
            return completion
        return self._answer(messages, simpler, schema=schema, temperature=temperature)


def at_temperature(model: Any, temperature: float, known: dict[float, Any]) -> Any:
    """A framework's model at this temperature, where it has one. Many open their connections late, so known ones are kept."""
    if "temperature" not in type(model).model_fields:
        return model
    if temperature not in known:
        known[temperature] = model.model_copy(update={"temperature": temperature})
    return known[temperature]


def completion_of(told: Iterable[Any], text: str) -> Completion:
    """A completion with what the provider told about it; without its text where that was cut off or refused."""
    facts = facts_of(told)
    usage = Usage(
        requests=1,
        input_tokens=facts.input_tokens or 0,
        cached_tokens=facts.cached_tokens or 0,
        output_tokens=facts.output_tokens or 0,
    )
    return Completion(text="" if (facts.finish_reason or "").lower() in _NO_ANSWER else text, usage=usage)


_NO_ANSWER = {"length", "max_tokens", "content_filter", "safety", "refusal"}


def _simpler(capabilities: EndpointCapabilities, error: Exception) -> EndpointCapabilities | None:
    """What is left of a capabilities after this complaint; None if it is none, or about something else."""
    status = getattr(error, "status_code", None)
    if isinstance(status, int) and status not in _COMPLAINTS:
        return None
    parameter = getattr(error, "param", None)
    return capabilities.without(str(error), parameter if isinstance(parameter, str) else None)


_COMPLAINTS = {400, 404, 422}  # a proxy answers 404 when no model behind it takes the parameters
