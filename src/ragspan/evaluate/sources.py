"""Answers that a tool has stored already: in traces, and in data sets of Phoenix and MLflow (`phoenix:NAME` and `mlflow:NAME`).

What reads a tool's traces is a `Source`, which a package registers in the entry-point group `ragspan_source` by the tool's name.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

from ragspan.arguments import meant
from ragspan.evaluate.rows import replacing, require_jsonl
from ragspan.exceptions import ConfigurationError, RagspanError, TableError
from ragspan.installed import load_part, part_names
from ragspan.records import RagRecord
from ragspan.tools.delivery import Unavailable
from ragspan.tools.http import TOO_LARGE, HttpClient
from ragspan.tools.mlflow import tracking_server
from ragspan.tools.phoenix import phoenix_server

_SOURCES = "ragspan_source"
GOOD = frozenset({"1", "true", "yes", "y", "pass", "passed", "good", "correct", "supported", "grounded", "faithful"})
BAD = frozenset({"0", "false", "no", "n", "fail", "failed", "bad", "incorrect", "wrong"})
BAD |= {"unsupported", "ungrounded", "hallucinated"}
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
    """An answer, what people said of it, and how it was scored."""

    record: RagRecord
    """Its parent is the answer's span, and its id is always the same for that."""
    opinions: Sequence[StoredScore] = ()
    """By whatever names; the last of a name counts."""
    scores: Sequence[StoredScore] = ()


class ReplyTooLarge(TableError):  # noqa: N818 - it is a state, not a mistake
    """A tool's reply is larger than we read: ask for less at once."""


class Source(Protocol):
    """Reads a tool's store; its address and credentials are in the environment, as the tool's writer of scores reads them."""

    def __call__(self, project: str, *, since_ns: int | None = None, annotated: bool = False) -> Iterator[StoredAnswer]:
        """The answers, from the oldest trace to the newest; pages are asked for as they are needed.

        Args:
            project: its name, as the tool shows it, or its id; a `TableError` if there is no such one.
            since_ns: Unix nanoseconds; traces that began before are left out.
            annotated: whether to read what people said, and ragspan's scores, too.
        """
        ...


def stored_answers(tool: str, project: str | None, since: str | None, *, annotated: bool) -> Iterator[StoredAnswer]:
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
    try:
        yield from source(project, since_ns=since_ns, annotated=annotated)
    except RagspanError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        why = f"its replies are not as expected ({type(error).__name__})"
        raise TableError(f"{tool} cannot be read: {why}") from error


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
    try:
        reply = client.call(method, path, **content)
        if reply.is_ok:
            return reply.body
        reason = f"http_{reply.status}"
    except (Unavailable, TimeoutError) as trouble:
        reason = str(trouble) if isinstance(trouble, Unavailable) else "timeout"
    except ImportError:
        raise ConfigurationError(f"{tool} is asked with the package requests: pip install 'ragspan[{tool}]'") from None
    meaning = {"http_401": " (it wants other credentials)", "http_404": " (it has no such project)"}.get(reason, "")
    # MLflow takes a search by POST, too.
    done = "written" if method == "POST" and not path.endswith("/search") else "read"
    kind = ReplyTooLarge if reason == TOO_LARGE else TableError
    raise kind(f"{tool} cannot be {done}: {reason}{meaning}, at {method} {client.endpoint.url}{path}")


def write_labels(output: Path, name: str, answers: Iterator[StoredAnswer]) -> tuple[int, int, Sequence[str]]:
    """Write the answers that have a label of this name as a table.

    Returns how many, how many more have one that says neither good nor bad, and the names that there are.
    """
    require_jsonl(output, "--output")
    written, unclear, names = 0, 0, set[str]()
    with replacing(output) as unfinished, unfinished.open("w", encoding="utf-8") as file:
        for answer in answers:
            names |= {one.metric for one in answer.opinions}
            for opinion in [one for one in answer.opinions if one.metric == name][-1:]:
                word = (opinion.label or "").strip().lower()
                is_good = None if opinion.value is None else opinion.value >= _GOOD_SCORE
                is_good = word in GOOD if word in GOOD | BAD else is_good
                written, unclear = written + (is_good is not None), unclear + (is_good is None)
                if is_good is not None:
                    label = "pass" if is_good else "fail"
                    file.write(json.dumps({**row_of(answer.record), "label": label}) + "\n")
    return written, unclear, sorted(names)


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


# Data sets of a tool

# Question and contexts are an example's inputs, the response its output. A row has a key that is always the same for the same answer, so
# that one which is there already is not added again.
KEY = "key"
_AT_ONCE = 100  # rows of a request
_PATIENCE = 60.0  # seconds
_MLFLOW = "/api/3.0/mlflow/datasets"
_Rows: TypeAlias = list[dict[str, Any]]
_Parts: TypeAlias = tuple[dict[str, Any], dict[str, Any], dict[str, Any]]
"""The inputs, the outputs, and all else of a row."""


def data_set_of(name: str) -> tuple[str, str] | None:
    """The tool and the data set that a name such as `phoenix:failures` means; None for any other name."""
    found = re.fullmatch(r"(phoenix|mlflow):(?!//)(.+)", name)
    return (found[1], found[2]) if found else None


def stored_rows(tool: str, name: str) -> Iterator[dict[str, Any]]:
    """Its rows, as a table has them; a `TableError` if the tool cannot be read, or has no such data set."""
    server, stored, _ = _TOOLS[tool]
    with contextlib.closing(HttpClient(server(timeout=_PATIENCE))) as client:
        identifier, found = stored(client, name)
    if identifier is None:
        raise TableError(f"{tool} has no data set {name!r}")
    yield from found


def add_rows(tool: str, name: str, rows: Sequence[Mapping[str, Any]]) -> int:
    """Add the rows whose keys are not there; makes the data set if there is none. Returns how many were added.

    After a `TableError`, for a tool that cannot be read or written, another try adds the rest.
    """
    server, stored, send = _TOOLS[tool]
    with contextlib.closing(HttpClient(server(timeout=_PATIENCE))) as client:
        identifier, found = stored(client, name)
        known = {row.get(KEY) for row in found}
        new = [row for row in rows if row[KEY] not in known]
        for first in range(0, len(new), _AT_ONCE):
            parts: list[_Parts] = []
            for row in new[first : first + _AT_ONCE]:
                rest = dict(row)
                inputs = {name: rest.pop(name) for name in ("question", "contexts")}
                parts.append((inputs, {"response": rest.pop("response")}, rest))
            identifier = send(client, name, identifier, parts)
        return len(new)


def _phoenix_rows(client: HttpClient, name: str) -> tuple[str | None, _Rows]:
    """The data set's id, None if there is no such one, and its rows."""
    found = asked(client, "phoenix", "GET", "/v1/datasets", query={"name": name})["data"]
    if not found:
        return None, []
    identifier = str(found[0]["id"])
    examples = asked(client, "phoenix", "GET", f"/v1/datasets/{identifier}/examples")["data"]["examples"]
    return identifier, [{**one["metadata"], **one["input"], **one["output"]} for one in examples]


def _add_to_phoenix(client: HttpClient, name: str, identifier: str | None, rows: Sequence[_Parts]) -> str:
    inputs, outputs, metadata = zip(*rows, strict=True)
    body = {"name": name, "inputs": inputs, "outputs": outputs, "metadata": metadata}
    body["action"] = "append" if identifier else "create"
    asked(client, "phoenix", "POST", "/v1/datasets/upload", query={"sync": "true"}, json=body)
    return name


def _mlflow_rows(client: HttpClient, name: str) -> tuple[str | None, _Rows]:
    search = {"filter_string": f'name = "{name}"'}
    found = asked(client, "mlflow", "POST", f"{_MLFLOW}/search", json=search).get("datasets", ())
    identifier = next((str(one["dataset_id"]) for one in found if one["name"] == name), None)
    rows: _Rows = []
    token = None if identifier is None else ""
    while token is not None:
        query = {"max_results": str(_AT_ONCE)} | ({"page_token": token} if token else {})
        page = asked(client, "mlflow", "GET", f"{_MLFLOW}/{identifier}/records", query=query)
        for record in json.loads(page.get("records") or "[]"):
            row: dict[str, Any] = {}
            for tag, text in (record.get("tags") or {}).items():
                with contextlib.suppress(ValueError, TypeError):  # MLflow's own tags are plain texts
                    row[tag] = json.loads(text)
            for part in ("expectations", "inputs", "outputs"):
                row |= record.get(part) or {}
            rows.append(row)
        token = page.get("next_page_token") or None
    return identifier, rows


def _add_to_mlflow(client: HttpClient, name: str, identifier: str | None, rows: Sequence[_Parts]) -> str:
    """All else of a row becomes tags of the record; its key is an input, by which MLflow tells records apart."""
    if identifier is None:
        identifier = asked(client, "mlflow", "POST", f"{_MLFLOW}/create", json={"name": name})["dataset"]["dataset_id"]
    records = []
    for inputs, outputs, rest in rows:
        tags = {tag: json.dumps(value) for tag, value in rest.items() if value is not None and tag != KEY}
        records.append({"inputs": {**inputs, KEY: rest[KEY]}, "outputs": outputs, "tags": tags})
    asked(client, "mlflow", "POST", f"{_MLFLOW}/{identifier}/records", json={"records": json.dumps(records)})
    return str(identifier)


_TOOLS: Final[Mapping[str, tuple[Callable[..., Any], ...]]] = {
    "phoenix": (phoenix_server, _phoenix_rows, _add_to_phoenix),
    "mlflow": (tracking_server, _mlflow_rows, _add_to_mlflow),
}
"""Where the server is, what reads a data set, and what adds rows to it."""
