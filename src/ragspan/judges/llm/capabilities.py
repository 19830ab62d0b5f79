"""What an endpoint takes, and how a request finds out.

Endpoints that call themselves compatible may lack schemas, JSON mode, several choices, temperatures (so do OpenAI's own
reasoning models) and more. What one refuses is left out, and the request is made again; later requests leave it out at once.

Guarantees:
- A request is made at most `_MOST_ATTEMPTS` times, and each time with other parameters.
- Only an answer teaches. A refusal that goes on without the parameter teaches nothing: the error was about something else.
- What a refusal names is left out first. If it names nothing, each parameter that the endpoint has not taken yet is left out
  in turn, the one that matters least first, and then all of them.
- A failure that may pass (a generation that broke the schema, an error of the server) costs only this request its schema,
  until it has happened `_PASSING_FAILURES` times without a request between that kept its schema.

Any number of threads and event loops may use one `EndpointHabits`. It has no lock: a race costs a request that learns again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from ragspan.judges.llm.errors import status_of
from ragspan.judges.llm.refused_parameters import INSTEAD, OPTIONAL, refusal_of
from ragspan.throttled_log import ThrottledLog

_MOST_ATTEMPTS = 12
_PASSING_FAILURES = 3
_SERVER_ERROR = 500
_FORMAT = "response_format"
_SIMPLER: Mapping[str, Literal["json_object", "none"]] = {"json_schema": "json_object", "json_object": "none"}
_FIRST_TO_GO = ("n", "temperature")
"""A request loses least without these."""
_log = ThrottledLog()


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointCapabilities:
    """The optional parameters that an endpoint takes."""

    response_format: Literal["json_schema", "json_object", "none"] = "json_schema"
    several_choices: bool = True
    temperature: bool = True
    left_out: frozenset[str] = frozenset()
    """Further parameters that it does not take."""

    def parameters(
        self, *, schema: Mapping[str, Any], n: int, temperature: float, further: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Those parameters of a request that the endpoint takes.

        Args:
            schema: of the reply.
            n: choices.
            temperature: of each choice.
            further: fields that the user sends, which go before the others.
        """
        sent: dict[str, Any] = {"temperature": temperature}
        if self.response_format == "json_schema":
            json_schema = {"name": "answer", "strict": True, "schema": schema}
            sent[_FORMAT] = {"type": "json_schema", "json_schema": json_schema}
        elif self.response_format == "json_object":
            sent[_FORMAT] = {"type": "json_object"}
        if n > 1:
            sent["n"] = n
        return self.kept(sent | dict(further or {}))

    def kept(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The fields that the endpoint takes, under the names that it takes."""
        kept = dict(fields)
        absent = {"n": self.several_choices, "temperature": self.temperature, _FORMAT: self.response_format != "none"}
        for name in [name for name in kept if name in self.left_out or not absent.get(name, True)]:
            value = kept.pop(name)
            instead = INSTEAD.get(name)
            if instead and instead not in self.left_out:
                kept.setdefault(instead, value)
        return kept

    def without(self, parameter: str) -> EndpointCapabilities:
        """The capabilities without one of `OPTIONAL`; of the format, without its strictest kind."""
        if parameter == _FORMAT:
            return replace(self, response_format=_SIMPLER.get(self.response_format, "none"))
        if parameter == "n":
            return replace(self, several_choices=False)
        if parameter == "temperature":
            return replace(self, temperature=False)
        return replace(self, left_out=self.left_out | {parameter})


class EndpointHabits:
    """What one endpoint has shown of the parameters that it takes.

    Args:
        capabilities: what it is expected to take at first.
    """

    def __init__(self, capabilities: EndpointCapabilities | None = None) -> None:
        self.capabilities = capabilities or EndpointCapabilities()
        self.refused: dict[str, str] = {}
        """The endpoint's words by the parameter that it refuses. They hold no prompt and no key."""
        self._taken: set[str] = set()
        self._passing_failures = 0

    def attempt(self) -> Attempt:
        """For one request."""
        return Attempt(self)

    def is_untried(self, parameter: str, capabilities: EndpointCapabilities) -> bool:
        """Whether no request with it was answered yet; of the format, with this kind of it."""
        return _kind(parameter, capabilities) not in self._taken

    def note_answer(
        self, sent: Collection[str], capabilities: EndpointCapabilities, lessons: Collection[_Lesson]
    ) -> None:
        """Learn of a request with these parameters that was answered, after these refusals."""
        self._taken.update(_kind(name, capabilities) for name in sent)
        if any(lesson.is_passing for lesson in lessons):
            self._passing_failures += 1
        elif _FORMAT in sent and not any(lesson.parameter == _FORMAT for lesson in lessons):
            self._passing_failures = 0
        is_lasting = self._passing_failures >= _PASSING_FAILURES
        for lesson in lessons:
            if is_lasting or not lesson.is_passing:
                self._learn(lesson)

    def _learn(self, lesson: _Lesson) -> None:
        name = lesson.parameter
        if name == _FORMAT and self.capabilities.response_format != lesson.kind:
            return  # another request has learned it
        self.capabilities = self.capabilities.without(name)
        self.refused.setdefault(lesson.kind, lesson.words)
        if name not in (_FORMAT, *_FIRST_TO_GO):
            _log.report(f"refused {name}", "the judge's endpoint refuses %s, which is left out from now on", name)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Lesson:
    """A refusal that a request met."""

    parameter: str
    kind: str
    """The parameter; of the format, which kind of it was refused."""
    words: str
    is_passing: bool


@dataclass(kw_only=True, slots=True)
class _Guesses:
    """Attempts without one parameter after the other, because nothing was named."""

    error: Exception
    """The one that named nothing."""
    rest: Iterator[tuple[str, ...]]


class Attempt:
    """One request on its way to parameters that the endpoint takes."""

    def __init__(self, habits: EndpointHabits) -> None:
        self.capabilities = habits.capabilities
        self.error: Exception | None = None
        """What to raise if the request cannot be made simpler."""
        self.is_probe = False
        """Whether an error of the server came before. It was retried then, so the next one need not be."""
        self._habits = habits
        self._named = (habits.capabilities, list[_Lesson]())
        """The capabilities, and the lessons, without guesses."""
        self._lessons: list[_Lesson] = []
        self._guesses: _Guesses | None = None
        self._count = 1

    def goes_on_without(self, error: Exception, sent: Collection[str], say: Callable[[Exception], str] = str) -> bool:
        """Whether there is a simpler request to make after this error; `capabilities` are its then.

        Args:
            error: of the request.
            sent: the names of its fields.
            say: makes words of an error that may be shown.
        """
        self._count += 1
        optional = [name for name in OPTIONAL if name in sent]
        refusal = refusal_of(error, optional)
        self.error = error
        if refusal is None or self._count > _MOST_ATTEMPTS:
            return False
        is_server_error = status_of(error) == _SERVER_ERROR
        self.is_probe = self.is_probe or is_server_error
        if refusal.parameter is None:
            return self._guess(error, optional, say)
        if refusal.is_passing and is_server_error and not self._habits.is_untried(refusal.parameter, self.capabilities):
            return False  # it took a schema before, so it is simply out
        self.capabilities, self._lessons = self._named
        self._guesses = None
        self._leave_out(refusal.parameter, say(error), is_passing=refusal.is_passing)
        self._named = self.capabilities, self._lessons
        return True

    def ended_well(self, sent: Collection[str]) -> None:
        """The request with these fields was answered."""
        self._habits.note_answer([name for name in OPTIONAL if name in sent], self.capabilities, self._lessons)

    def _guess(self, error: Exception, optional: Collection[str], say: Callable[[Exception], str]) -> bool:
        if self._guesses is None:
            untried = [name for name in optional if self._habits.is_untried(name, self.capabilities)]
            self._guesses = _Guesses(error=error, rest=_guesses(untried, self.capabilities.response_format))
        self.error = self._guesses.error
        guess = next(self._guesses.rest, None)
        if guess is None:
            return False
        self.capabilities, self._lessons = self._named
        for name in guess:
            self._leave_out(name, say(self.error), is_passing=False)
        return True

    def _leave_out(self, name: str, words: str, *, is_passing: bool) -> None:
        lesson = _Lesson(parameter=name, kind=_kind(name, self.capabilities), words=words, is_passing=is_passing)
        self._lessons = [*self._lessons, lesson]
        self.capabilities = self.capabilities.without(name)


def _kind(name: str, capabilities: EndpointCapabilities) -> str:
    return capabilities.response_format if name == _FORMAT else name


def _guesses(names: Collection[str], response_format: str) -> Iterator[tuple[str, ...]]:
    """What to leave out, in turn."""
    first = [name for name in _FIRST_TO_GO if name in names]
    others = [name for name in names if name not in (*first, _FORMAT)]
    formats = (
        [(_FORMAT,) * times for times in ((1, 2) if response_format == "json_schema" else (1,))]
        if _FORMAT in names
        else []
    )
    yield from ((name,) for name in (*first, *others))
    yield from formats
    if len(names) > 1:
        yield (*(formats[-1] if formats else ()), *first, *others)
