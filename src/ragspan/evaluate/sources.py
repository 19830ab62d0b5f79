"""Answers that a tool has stored already. A package registers a `Source` in the entry-point group `ragspan_source`, by the tool's name."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ragspan.arguments import meant
from ragspan.evaluate.written_files import replacing, require_jsonl
from ragspan.exceptions import ConfigurationError, RagspanError, TableError
from ragspan.installed import load_part, part_names
from ragspan.records import RagRecord

if TYPE_CHECKING:
    from ragspan.tools.http import HttpClient

_SOURCES = "ragspan_source"
ANY_NAME = "*"
GOOD = frozenset({"1", "true", "yes", "y", "pass", "passed", "good", "correct", "supported", "grounded", "faithful"})
BAD = frozenset(
    {"0", "false", "no", "n", "fail", "failed", "bad", "incorrect", "wrong", "unsupported", "ungrounded"}
    | {"hallucinated"}
)
"""People's labels of responses."""
_GOOD_SCORE = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredScore:
    """A score that ragspan wrote to the tool, or what a person said: a label, a value, or both."""

    metric: str
    value: float | None = None
    label: str | None = None
    finding: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredAnswer:
    """An answer, what people said of it from the oldest to the newest, and how it was scored."""

    record: RagRecord
    """Its parent is the answer's span, and its id is always the same for that."""
    opinions: Sequence[StoredScore] = ()
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
            project: its name, as the tool shows it, or its id; a `TableError` if there is no such one.
            since_ns: Unix nanoseconds; traces that began before are left out.
            annotation: the name of what people said, or `ANY_NAME`; None asks for no opinions.
            has_scores: whether to read ragspan's scores, too.
        """
        ...


def stored_answers(
    tool: str, project: str | None, since: str | None, annotation: str | None = None, *, has_scores: bool = False
) -> Iterator[StoredAnswer]:
    """The answers that a command names by its options."""
    known = sorted({"mlflow", "phoenix", *part_names(_SOURCES)})
    missing = f"nothing reads {tool!r}: traces can be read from {' and '.join(known)}{meant(tool, known)}"
    if tool in known:
        missing = f"nothing reads {tool} here: pip install 'ragspan[receiver]'"
    source: Source = load_part(_SOURCES, tool, missing)
    if not project:
        raise ConfigurationError(f"--project should say which project of {tool} to read")
    try:
        since_ns = nanoseconds_of(since)
    except ValueError:
        raise ConfigurationError("--since is not a time: give ISO 8601 text or Unix nanoseconds") from None

    def answers() -> Iterator[StoredAnswer]:
        try:
            yield from source(project, since_ns=since_ns, annotation=annotation, has_scores=has_scores)
        except RagspanError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            why = f"its replies are not as expected ({type(error).__name__})"
            raise TableError(f"{tool} cannot be read: {why}") from error

    return answers()


def nanoseconds_of(time: str | int | None) -> int | None:
    """A time as Unix nanoseconds: such a number, or ISO 8601 text, which is UTC where it names no zone; None of an empty one."""
    text = str(time or "").strip()
    if not text or text.isdecimal():
        return int(text) if text else None
    moment = dt.datetime.fromisoformat(re.sub("[zZ]$", "+00:00", text))  # Python 3.10 does not know the Z
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.timezone.utc)
    return (moment - dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)) // dt.timedelta(microseconds=1) * 1000


def asked(client: HttpClient, tool: str, method: str, path: str, **content: Any) -> Mapping[str, Any]:
    """What a tool's server answers; a `TableError` where it does not, or with a status that is not a success.

    A `ReplyTooLarge` where it has more than the client reads.
    """
    from ragspan.tools.delivery import Unavailable
    from ragspan.tools.http import TOO_LARGE

    try:
        reply = client.call(method, path, **content)
        if reply.is_ok:
            return reply.body
        reason = f"http_{reply.status}"
    except (Unavailable, TimeoutError) as trouble:
        reason = str(trouble) if isinstance(trouble, Unavailable) else "timeout"
    except ConfigurationError:
        raise ConfigurationError(f"{tool} is asked with the package requests: pip install 'ragspan[{tool}]'") from None
    meaning = {"http_401": " (it wants other credentials)", "http_404": " (it has no such project)"}.get(reason, "")
    # MLflow takes a search by POST, too.
    done = "written" if method == "POST" and not path.endswith("/search") else "read"
    kind = ReplyTooLarge if reason == TOO_LARGE else TableError
    raise kind(f"{tool} cannot be {done}: {reason}{meaning}, at {method} {client.endpoint.url}{path}")


def write_labels(output: Path, answers: Iterator[StoredAnswer]) -> tuple[int, int]:
    """Write the answers that have a label as a table; returns how many, and how many have one that says neither good nor bad."""
    require_jsonl(output, "--output")
    written = unclear = 0
    with replacing(output) as unfinished, unfinished.open("w", encoding="utf-8") as file:
        for answer in answers:
            for opinion in answer.opinions[-1:]:
                word = (opinion.label or "").strip().lower()
                is_good = None if opinion.value is None else opinion.value >= _GOOD_SCORE
                is_good = word in GOOD if word in GOOD | BAD else is_good
                written, unclear = written + (is_good is not None), unclear + (is_good is None)
                if is_good is not None:
                    label = "pass" if is_good else "fail"
                    file.write(json.dumps({**row_of(answer.record), "label": label}) + "\n")
    return written, unclear


def row_of(record: RagRecord) -> dict[str, Any]:
    """What a table of answers has of a record."""
    span = record.parent
    return {
        "record_id": record.record_id,
        "question": record.question,
        "contexts": None if record.contexts is None else [context.text for context in record.contexts],
        "response": record.response,
        "trace_id": span and format(span.trace_id, "032x"),
        "span_id": span and format(span.span_id, "016x"),
    }
