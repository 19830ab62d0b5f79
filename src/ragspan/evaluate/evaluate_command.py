"""What `ragspan evaluate`, `agree` and `failures` do: the evaluation, and everything that is written and said about it."""

from __future__ import annotations

import json
import signal
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console

from ragspan.arguments import SHARE
from ragspan.config import settings_with
from ragspan.counted import counted
from ragspan.defaults import emitter_from
from ragspan.evaluate.evaluation import Evaluation, parts
from ragspan.evaluate.gates import check_gates, parse_gates, require_metrics
from ragspan.evaluate.label_agreement import MEASURES, agreement
from ragspan.evaluate.progress import progress_on_stderr
from ragspan.evaluate.report import compare, write_report
from ragspan.evaluate.rows import ResultFile, partial_of
from ragspan.evaluate.running import run
from ragspan.evaluate.scoring import plan_from
from ragspan.evaluate.sources import row_of, stored_answers
from ragspan.evaluate.tool_data_sets import KEY, data_set_of
from ragspan.evaluate.written_files import replacing, require_apart, require_jsonl
from ragspan.exceptions import ConfigurationError, TableError
from ragspan.records import RagRecord
from ragspan.telemetry.emitter_protocols import AnswerHandle, EmitHandle, Emitter

_NOT_MET, _INTERRUPTED = 1, 130
_REASONS_SHOWN = 10


class _ToTrace:
    """The emitter of a tool, which gets the scores of the answers that the tool has."""

    def __init__(self, emitter: Emitter) -> None:
        self._emitter = emitter
        self.score_wait = emitter.score_wait
        self.shutdown = emitter.shutdown
        self.is_flushed = True
        """Whether the last flush found that everything was sent."""

    def start(self, record: RagRecord) -> AnswerHandle:
        # The record's parent is the answer's span, whoever else would make another.
        return EmitHandle(self._emitter.start(record).finish, span=record.parent)

    def flush(self, timeout: float) -> bool:
        self.is_flushed = self._emitter.flush(timeout)
        return self.is_flushed


def evaluate_table(options: Namespace) -> int:
    """Do what the options of the command ask for; returns the exit code."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return _evaluate_table(options)
    except KeyboardInterrupt:  # before the first row, or for the second time
        _tell([_how_to_continue(options)])
        return _INTERRUPTED
    finally:
        signal.signal(signal.SIGTERM, before)


def _evaluate_table(options: Namespace) -> int:
    _check_files(options)
    if options.min_scored is not None:
        SHARE.check("--min-scored", options.min_scored)
    gates = [
        *parse_gates("mean", options.fail_under or ()),
        *parse_gates("passing", options.min_passing or ()),
        *parse_gates("none_below", options.none_below or ()),
    ]
    baseline = None if options.compare is None else ResultFile(options.compare)
    _ = baseline and baseline.metrics  # an error should come before an hour of judging
    plan = plan_from({**vars(options), "data": _data(options)}, ends_on_ctrl_c=True)
    require_metrics(gates, [metric.name for metric in plan.metrics])
    emitters = [_ToTrace(emitter_from(options.source, plan.settings, None))] if options.to_trace else []
    with progress_on_stderr() as on_row:
        evaluation = run(
            replace(plan, emitters=emitters, on_begin=lambda columns: _tell(filter(None, [columns])), on_row=on_row)
        )
    _tell_bad_rows(evaluation)
    for emitter in emitters:
        what = "the scores of" if emitter.is_flushed else "not everything was sent, and the log above says why: of"
        _tell([f"{what} {counted(evaluation.rows, 'answer', grouped=True)} go to {options.source}"])
    results = check_gates(evaluation, gates, min_scored=options.min_scored) if evaluation.is_complete else []
    if evaluation.is_complete or evaluation.rows:
        _print(parts(evaluation, with_worst=True))
    found = agreement(evaluation)
    if found is not None and found.failures is not None:
        _print([found.rate_in_words])
    _write_json(options.json, {**evaluation.figures(), "gates": results, "agreement": found})
    if not evaluation.is_complete:
        _tell([_how_to_continue(options, evaluation.rows)])
        return _INTERRUPTED
    if baseline is not None:
        found_both = compare(evaluation, baseline)
        _print([*map(str, found_both.metrics), *found_both.cautions])
    if options.report is not None:
        write_report(evaluation, options.report, baseline=baseline, gates=results)
    _tell(f"written: {path}" for path in (options.output, options.report, options.json) if path is not None)
    if options.output is not None and evaluation.has_passing:
        _tell(["some rows failed: the same command with --resume judges only these again"])
    if not evaluation.is_scored:
        _tell([f"nothing was scored: {evaluation.why_not_scored}"])
        return _NOT_MET
    below = [result.trouble for result in results if result.trouble is not None]
    _tell(f"a gate failed: {line}" for line in below)
    return _NOT_MET if below or not all(emitter.is_flushed for emitter in emitters) else 0


def agree_with_labels(options: Namespace) -> int:
    """Evaluate the file, and print how well the metrics that measure its label agree with it; returns the exit code.

    Metrics that are named are compared whatever they measure.
    """
    require_apart({"the table": options.data}, {"--json": options.json})
    is_chosen = options.metrics is not None
    if not is_chosen:
        usual = settings_with().metrics
        options.metrics = [metric for metric in MEASURES if metric in usual] or MEASURES[:1]
    with progress_on_stderr() as on_row:  # a judge that is compared with labels reads all rows
        evaluation = run(plan_from(vars(options), has_share=False, on_row=on_row))
    _tell_bad_rows(evaluation)
    if not evaluation.labels:
        raise TableError(f"no row of {options.data} has a label that says good or bad")
    found = agreement(evaluation, with_all=is_chosen)
    rows = evaluation.rows + evaluation.bad_row_count
    _print([f"{len(evaluation.labels):,} of {rows:,} rows have a label"])
    for one in found.metrics if found else ():
        if left := len(evaluation.labels) - one.labels:
            _print(
                [
                    f"{one.metric} has no score for {left:,} of these (of all rows: {evaluation.summary[one.metric].reasons})"
                ]
            )
    _write_json(options.json, found)
    if found is None:
        _tell([f"none of them has a score: {evaluation.why_not_scored}"])
        return _NOT_MET
    _print(found.parts())
    return 0


def _data(options: Namespace) -> Any:
    """The file, or the records that a tool has stored."""
    if (options.data is None) is (options.source is None):
        raise ConfigurationError("give a FILE, or a tool after --from, and not both")
    if options.source is None:
        if options.project or options.since or options.to_trace:
            raise ConfigurationError("--project, --since and --to-trace are about a tool: name it after --from")
        return options.data
    return (stored.record for stored in stored_answers(options.source, options.project, options.since))


def _check_files(options: Namespace) -> None:
    """What is wrong with a file should be known before anything is read or scored."""
    written = {f"--{name}": getattr(options, name) for name in ("output", "report", "json")}
    partial = {} if options.output is None else {"the .partial file of --output": partial_of(options.output)}
    require_apart({"the table": options.data, "the baseline of --compare": options.compare}, {**written, **partial})
    for option, path in written.items():
        if path is not None and not path.absolute().parent.is_dir():
            raise ConfigurationError(f"{option} is {str(path)!r}, but there is no folder {str(path.parent)!r}")


# Failures ------------------------------------------------------------------------------------------------------------


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
    try:
        added = _write(options.output, rows) if data_set is None else data_set.add(rows)
    except TableError as error:
        told = f"nothing more was written to {options.to}: {error}"
        raise error if data_set is None else TableError(told) from None
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
        raise TableError(f"{path} was not written by ragspan failures: give another name, or delete it") from None
    new = [json.dumps(row) for row in rows if row[KEY] not in known]
    with replacing(path) as unfinished:
        unfinished.write_text("".join(f"{line}\n" for line in [*kept, *new]), encoding="utf-8")
    return len(new)


# What is said and written ---------------------------------------------------------------------------------------------


def _tell(lines: Iterable[str]) -> None:
    for line in lines:
        print(line, file=sys.stderr)  # noqa: T201 - a command's own words


def _print(shown: Iterable[Any]) -> None:
    console = Console(highlight=False, markup=False)
    for part in shown:
        console.print(part, soft_wrap=not hasattr(part, "add_row"))


def _tell_bad_rows(evaluation: Evaluation) -> None:
    """The bad rows, in one line for each reason."""
    rows: dict[str, list[str]] = {}
    for bad in evaluation.bad_rows:
        rows.setdefault(bad.reason, []).append(bad.place)
    for reason, places in list(rows.items())[:_REASONS_SHOWN]:
        _tell([f"skipped {places[0]}{f' and {len(places) - 1:,} more rows' if len(places) > 1 else ''}: {reason}"])
    if len(rows) > _REASONS_SHOWN:
        _tell([f"... and {len(rows) - _REASONS_SHOWN:,} more reasons; --json lists the rows"])


def _how_to_continue(options: Namespace, rows: int = 0) -> str:
    partial = None if options.output is None else partial_of(options.output)
    done = f"Stopped after {counted(rows, 'row', grouped=True)}" if rows else "Stopped"
    if partial is not None and partial.exists():
        return f"{done}. What is done is saved in {partial}: continue with the same command and --resume."
    return f"{done}. No scores are saved{'' if partial else ': with --output FILE a run can be continued later'}."


def _write_json(path: Path | None, figures: Any) -> None:
    if path is not None:
        with replacing(path) as unfinished:
            text = json.dumps(msgspec.to_builtins(figures), indent=2, allow_nan=False)
            unfinished.write_text(text + "\n", encoding="utf-8")
