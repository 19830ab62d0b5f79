"""`ragspan failures`: the answers that fail, as a table or a data set of a tool, to look at, to label and to evaluate again."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ragspan.counted import counted
from ragspan.evaluate.rows import ResultFile
from ragspan.evaluate.sources import row_of, stored_answers
from ragspan.evaluate.tool_data_sets import KEY, data_set_of
from ragspan.evaluate.written_files import replacing, require_apart, require_jsonl
from ragspan.exceptions import ConfigurationError, TableError


def collect_failures(options: Namespace) -> str:
    """Do what the command asks for; returns what was done, in a sentence."""
    if (options.data is None) is (options.source is None):
        raise ConfigurationError("give a FILE, or a tool after --from, and not both")
    if (options.output is None) is (options.to is None):
        raise ConfigurationError("say where they go: --output FILE.jsonl, or --to phoenix:NAME or mlflow:NAME")
    data_set = None if options.to is None else data_set_of(options.to)
    if options.output is not None:
        require_jsonl(options.output, "--output")
        require_apart({"the file of rows": options.data}, {"--output": options.output})
    elif data_set is None:
        raise ConfigurationError(f"--to is {options.to!r}, but should be phoenix:NAME or mlflow:NAME")
    rows = list({row[KEY]: row for row in _failing(options)}.values())
    added = _write(options.output, rows) if data_set is None else data_set.add(rows)
    there = len(rows) - added
    answers = counted(len(rows), "failing answer", grouped=True)
    known = f", {there:,} of which were there already" if there else ""
    return f"{answers} {'is' if len(rows) == 1 else 'are'} in {options.output or options.to}{known}"


def _failing(options: Namespace) -> Iterator[dict[str, Any]]:
    """Rows that `ragspan evaluate` and `agree` take: people write `pass` or `fail` into their labels."""
    chosen = {name.strip() for name in (options.metrics or "").split(",") if name.strip()}
    if options.source is not None:
        for answer in stored_answers(options.source, options.project, options.since, has_scores=True):
            scores = [one for one in answer.scores if one.label == "fail" and (not chosen or one.metric in chosen)]
            if scores:
                worst = min(scores, key=lambda one: 0.0 if one.value is None else one.value)
                about = {"metric": worst.metric, "finding": worst.finding, "cause": None}
                yield _keyed(row_of(answer.record), about, {one.metric: one.value for one in scores})
        return
    file = ResultFile(options.data)
    unknown = chosen - set(file.metrics)
    if unknown:
        raise ConfigurationError(f"no metric {min(unknown)!r} in {file.path}; there are: {', '.join(file.metrics)}")
    for row in file.rows():
        failing = {name: score for name, score in row.failing.items() if not chosen or name in chosen}
        if failing:
            metric, score = min(failing.items(), key=lambda item: item[1].value)
            label = None if row.label is None else "pass" if row.label else "fail"
            more = {"metric": metric, "finding": score.explanation, "cause": score.cause, "label": label}
            yield _keyed(row_of(row.record), more, {name: float(one.value) for name, one in failing.items()})


def _keyed(row: dict[str, Any], about: dict[str, Any], fails: dict[str, Any]) -> dict[str, Any]:
    texts = json.dumps([row[name] for name in ("record_id", "question", "contexts", "response")])
    key = blake2b(texts.encode(errors="surrogatepass"), digest_size=8).hexdigest()
    return {KEY: key, **row, "label": None, **about, "fails": fails}


def _write(path: Path, rows: Sequence[dict[str, Any]]) -> int:
    """Add the rows that are not there; those that are stay as they are, with the labels that people gave. Returns how many were new."""
    try:
        kept = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
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
