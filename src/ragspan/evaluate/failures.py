"""`ragspan failures`: the answers that fail, as a table or a data set of a tool, to look at, to label and to evaluate again."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ragspan.counted import counted
from ragspan.evaluate.row_file import ResultFile, require_jsonl
from ragspan.evaluate.sources import StoredAnswer, row_of, stored_answers
from ragspan.evaluate.tool_data_sets import KEY, DataSet, data_set_of
from ragspan.evaluate.written_files import replacing, require_apart
from ragspan.exceptions import ConfigurationError, TableError
from ragspan.records import RagRecord


def collect_failures(options: Namespace) -> str:
    """Do what the command asks for; returns what was done, in a sentence."""
    if (options.data is None) is (options.source is None):
        raise ConfigurationError("give a FILE, or a tool after --from, and not both")
    if (options.output is None) is (options.to is None):
        raise ConfigurationError("say where they go: --output FILE.jsonl, or --to phoenix:NAME or mlflow:NAME")
    target: DataSet | Path
    if options.output is not None:
        require_jsonl(options.output, "--output")
        require_apart({"the file of rows": options.data}, {"--output": options.output})
        target = options.output
    else:
        named = data_set_of(options.to)
        if named is None:
            raise ConfigurationError(f"--to is {options.to!r}, but should be phoenix:NAME or mlflow:NAME")
        target = named
    chosen = {name.strip() for name in (options.metrics or "").split(",") if name.strip()}
    if options.source is not None:
        found = _of_tool(stored_answers(options.source, options.project, options.since, has_scores=True), chosen)
    else:
        found = _of_rows(ResultFile(options.data), chosen)
    rows = list({row[KEY]: row for row in found}.values())
    added = _write(target, rows) if isinstance(target, Path) else target.add(rows)
    there = len(rows) - added
    answers = counted(len(rows), "failing answer", grouped=True)
    known = f", {there:,} of which were there already" if there else ""
    return f"{answers} {'is' if len(rows) == 1 else 'are'} in {options.output or options.to}{known}"


def _of_rows(file: ResultFile, chosen: set[str]) -> Iterator[dict[str, Any]]:
    unknown = chosen - set(file.metrics)
    if unknown:
        raise ConfigurationError(f"no metric {min(unknown)!r} in {file.path}; there are: {', '.join(file.metrics)}")
    for row in file.rows():
        failing = {name: score for name, score in row.failing.items() if not chosen or name in chosen}
        if failing:
            worst, score = min(failing.items(), key=lambda item: item[1].value)
            fails = {name: float(one.value) for name, one in failing.items()}
            label = None if row.label is None else "pass" if row.label else "fail"
            yield _row(row.record, fails, worst, score.explanation, score.cause, label=label)


def _of_tool(answers: Iterator[StoredAnswer], chosen: set[str]) -> Iterator[dict[str, Any]]:
    for answer in answers:
        failing = [one for one in answer.scores if one.label == "fail" and (not chosen or one.metric in chosen)]
        if failing:
            worst = min(failing, key=lambda one: 0.0 if one.value is None else one.value)
            fails = {one.metric: one.value for one in failing}
            yield _row(answer.record, fails, worst.metric, worst.finding, None, label=None)


def _row(
    record: RagRecord, fails: dict[str, Any], metric: str, finding: str | None, cause: str | None, *, label: str | None
) -> dict[str, Any]:
    """A row that `ragspan evaluate` and `agree` take: people write `pass` or `fail` into its label."""
    row = row_of(record)
    texts = json.dumps([row[name] for name in ("record_id", "question", "contexts", "response")])
    key = blake2b(texts.encode(errors="surrogatepass"), digest_size=8).hexdigest()
    more = {"metric": metric, "finding": finding, "cause": cause, "fails": fails, "label": label}
    return {KEY: key, **row, **more}


def _write(path: Path, rows: Sequence[dict[str, Any]]) -> int:
    """Add the rows that are not there; those that are stay as they are, with the labels that people gave. Returns how many were new."""
    kept: list[str] = []
    known: set[object] = set()
    try:
        if path.exists():
            kept = path.read_text(encoding="utf-8").splitlines()
            known = {json.loads(line)[KEY] for line in kept if line.strip()}
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, LookupError, TypeError):
        raise TableError(
            f"{path} is not a table that ragspan failures wrote: give another name, or delete it"
        ) from None
    new = [json.dumps(row) for row in rows if row[KEY] not in known]
    with replacing(path) as unfinished:
        unfinished.write_text("".join(f"{line}\n" for line in [*kept, *new]), encoding="utf-8")
    return len(new)
