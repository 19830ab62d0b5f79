"""Answers that a tool has stored already: `ragspan evaluate --from` scores them, `ragspan labels pull` reads what people said.

A package registers a `Source` in the entry-point group `ragspan_source`, under the tool's name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from ragspan.arguments import meant
from ragspan.evaluate.cells import CellError, nanoseconds_of
from ragspan.evaluate.written_files import replacing
from ragspan.exceptions import ConfigurationError, RagspanError, TableError
from ragspan.installed import load_part, part_names
from ragspan.labelled import BAD, GOOD
from ragspan.records import RagRecord

if TYPE_CHECKING:
    from ragspan.tools.http import HttpClient

_SOURCES = "ragspan_source"
_GOOD_SCORE = 0.5
_MEANINGS = {
    "http_401": "it wants other credentials",
    "http_403": "it does not let us see that",
    "http_404": "it has no such project, or is too old to be asked",
    "reply_too_large": "one of its traces is larger than 16 MiB, or has more than 500,000 values",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Opinion:
    """What a person said of an answer."""

    label: str | None = None
    score: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredScore:
    """A score that ragspan wrote to the tool."""

    metric: str
    value: float | None
    label: str | None
    finding: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredAnswer:
    """An answer, what people said of it, and how it was scored."""

    record: RagRecord
    """Its parent is the answer's span, and its id is always the same for that."""
    opinions: Sequence[Opinion] = ()
    """From the oldest to the newest."""
    scores: Sequence[StoredScore] = ()


class ReplyTooLarge(TableError):  # noqa: N818 - it is a state, not a mistake
    """A tool's reply is larger than we read: ask for less at once."""


class Source(Protocol):
    """Reads a tool's store; its address and credentials are in the environment, as the tool's writer of scores reads them."""

    def __call__(
        self, project: str, *, since_ns: int | None = None, annotation: str | None = None, has_scores: bool = False
    ) -> Iterator[StoredAnswer]:
        """The answers, from the oldest trace to the newest; pages are asked for as they are needed.

        Args:
            project: its name, as the tool shows it, or its id.
            since_ns: Unix nanoseconds; traces that began before are left out.
            annotation: the name of what people said; None asks for no opinions.
            has_scores: whether to read ragspan's scores, too.

        Raises:
            TableError: the store cannot be read, or has no such project.
            ConfigurationError: the environment has no address that can be used, or a package is missing.
        """
        ...


def stored_answers(
    tool: str, project: str | None, since: str | None, annotation: str | None = None, *, has_scores: bool = False
) -> Iterator[StoredAnswer]:
    """The answers that a command names by its options.

    Raises:
        ConfigurationError: no project is named, the time is none, or the tool's package is not installed.
    """
    known = sorted({"mlflow", "phoenix", *part_names(_SOURCES)})
    missing = f"nothing reads {tool!r}: traces can be read from {' and '.join(known)}{meant(tool, known)}"
    if tool in known:
        missing = f"nothing reads {tool} here: pip install 'ragspan[receiver]'"
    source: Source = load_part(_SOURCES, tool, missing)
    if not project:
        raise ConfigurationError(f"--project should say which project of {tool} to read")
    try:
        since_ns = nanoseconds_of(since)
    except CellError as error:
        raise ConfigurationError(f"--since {error}") from None
    return _checked(tool, source(project, since_ns=since_ns, annotation=annotation, has_scores=has_scores))


def _checked(tool: str, answers: Iterator[StoredAnswer]) -> Iterator[StoredAnswer]:
    try:
        yield from answers
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, RagspanError):
            raise
        raise TableError(f"{tool} cannot be read: its replies are not as expected ({type(error).__name__})") from error


def asked(client: HttpClient, tool: str, method: str, path: str, **content: Any) -> Mapping[str, Any]:
    """What a tool's server answers.

    Raises:
        ReplyTooLarge: the answer has more bytes or values than the client reads.
        TableError: it does not answer, or with a status that is not a success.
    """
    from ragspan.tools.http import TOO_LARGE
    from ragspan.tools.queue import Unavailable

    try:
        reply = client.call(method, path, **content)
        if reply.is_ok:
            return reply.body
        reason = f"http_{reply.status}"
    except Unavailable as trouble:
        reason = str(trouble)
    except TimeoutError:
        reason = "timeout"
    meaning = _MEANINGS.get(reason)
    kind = ReplyTooLarge if reason == TOO_LARGE else TableError
    raise kind(f"{tool} cannot be read: {reason}{f' ({meaning})' if meaning else ''}")


# Labels ---------------------------------------------------------------------------------------------------------------


def write_labels(output: Path, answers: Iterator[StoredAnswer]) -> tuple[int, int]:
    """Write the answers that have a label as a table, for `ragspan agree`.

    Returns:
        How many were written, and how many have a label that says neither good nor bad.

    Raises:
        ConfigurationError: the file's name does not end with `.jsonl`.
        TableError: the file cannot be written, or the tool cannot be read.
    """
    if output.suffix != ".jsonl":
        raise ConfigurationError(f"--output is {str(output)!r}, but the table is JSONL: name it {output.stem}.jsonl")
    written = unclear = 0
    try:
        with replacing(output) as unfinished, unfinished.open("wb") as file:
            for answer in answers:
                if not answer.opinions:
                    continue
                is_good = _is_good(answer.opinions[-1])
                if is_good is None:
                    unclear += 1
                else:
                    written += 1
                    file.write(msgspec.json.encode(_row(answer, is_good=is_good)) + b"\n")
    except OSError as error:
        raise TableError(f"{output} cannot be written: {error.strerror or error}") from None
    return written, unclear


def _is_good(opinion: Opinion) -> bool | None:
    word = (opinion.label or "").strip().lower()
    if word in GOOD or word in BAD:
        return word in GOOD
    return None if opinion.score is None else opinion.score >= _GOOD_SCORE


def _row(answer: StoredAnswer, *, is_good: bool) -> dict[str, Any]:
    record, span = answer.record, answer.record.parent
    return {
        "question": record.question,
        "contexts": None if record.contexts is None else [context.text for context in record.contexts],
        "response": record.response,
        "label": "pass" if is_good else "fail",
        "trace_id": span and format(span.trace_id, "032x"),
        "span_id": span and format(span.span_id, "016x"),
        "record_id": record.record_id,
    }
