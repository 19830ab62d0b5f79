"""What `ragspan evaluate`, `agree` and `failures` do: the evaluation, and everything that is written and said about it."""

from __future__ import annotations

import json
import signal
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from ragspan.arguments import counted
from ragspan.config import settings_with
from ragspan.engine.metric_outcome import about_response
from ragspan.evaluate.evaluation import Evaluation, bad_row_lines, headline, parts, print_parts, text_table
from ragspan.evaluate.gates import KINDS, check_gates, parse_gates
from ragspan.evaluate.label_agreement import CLOSE, MEASURES, agreement
from ragspan.evaluate.report import compare, write_report
from ragspan.evaluate.rows import ResultFile, partial_of, replacing, require_apart, require_jsonl
from ragspan.evaluate.scoring import evaluate, metrics_of
from ragspan.evaluate.sources import BAD, GOOD, KEY, StoredAnswer, add_rows, data_set_of, row_of, stored_answers
from ragspan.exceptions import ConfigurationError, TableError
from ragspan.outcomes import ScoredRecord
from ragspan.records import RagRecord
from ragspan.telemetry.emitter_protocols import Emitter, emitter_class

_NOT_MET, _INTERRUPTED = 1, 130
_SENT_AT_ONCE, _SENDING = 500, 30.0  # rows, and seconds for them
_SAME = ("question_column", "contexts_column", "answer_column", "label_column", "judge", "limit")
"""Options of the commands that are arguments of `evaluate`."""


def evaluate_table(options: Namespace) -> int:
    """Do what the options of the command ask for; returns the exit code."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return _evaluate_table(options)
    except KeyboardInterrupt:
        output, saved = options.output, "No scores are saved: with --output FILE a run can be continued later."
        if output is not None:
            saved = f"{output} has all rows of a run." if output.exists() else "No row was scored yet."
            if (partial := partial_of(output)).exists():
                saved = f"What is done is saved in {partial}: continue with the same command and --resume."
        _tell([f"Stopped. {saved}"])
        return _INTERRUPTED
    finally:
        signal.signal(signal.SIGTERM, before)


def _evaluate_table(options: Namespace) -> int:
    # What is wrong should be known before anything is read or scored.
    written = {f"--{name}": getattr(options, name) for name in ("output", "report", "json")}
    partial = {} if options.output is None else {"the .partial file of --output": partial_of(options.output)}
    require_apart({"the table": options.data, "the baseline of --compare": options.compare}, {**written, **partial})
    for option, path in written.items():
        if path is not None and not path.absolute().parent.is_dir():
            raise ConfigurationError(f"{option} is {str(path)!r}, but there is no folder {str(path.parent)!r}")
    baseline = None if options.compare is None else ResultFile(options.compare)
    _ = baseline and baseline.metrics
    settings = settings_with(judge=options.judge)
    metrics = metrics_of(settings, options.metrics, options.judge)
    gates = parse_gates({kind: getattr(options, kind) or () for kind in KINDS}, [metric.name for metric in metrics])
    stored = _stored(options)
    emitter = None
    if options.to_trace:  # the tool has the texts that are quoted: they were read there
        may_quote = settings.explanations is None and settings.capture_content is not False
        emitter = emitter_class(options.source)(explanations=may_quote or settings.explanations)
    evaluation = evaluate(
        options.data if stored is None else (answer.record for answer in stored),
        metrics,
        **{name: getattr(options, name) for name in (*_SAME, "output", "resume", "judge_share")},
        by=options.by or (),
        progress=True,
    )
    is_sent = emitter is None or _send(evaluation, emitter, options.source)
    results = check_gates(evaluation, gates, min_scored=options.min_scored)
    print_parts(parts(evaluation, with_worst=True))
    found = agreement(evaluation)
    if found is not None and found.failures is not None:
        print_parts([found.rate_in_words])
    if options.json is not None:
        figures = msgspec.to_builtins({**evaluation.figures(), "gates": results, "agreement": found})
        with replacing(options.json) as unfinished:
            unfinished.write_text(json.dumps(figures, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    if baseline is not None:
        compared = compare(evaluation, baseline)
        print_parts([compared.pairing, *map(str, compared.metrics), *compared.cautions])
    if options.report is not None:
        write_report(evaluation, options.report, baseline=baseline, gates=results)
    _tell(f"written: {path}" for path in (options.output, options.report, options.json) if path is not None)
    if options.output is not None and evaluation.has_passing:
        _tell(["some rows failed: the same command with --resume judges only these again"])
    if not evaluation.is_scored:
        _tell([f"the judge scored nothing: {evaluation.why_not_scored}"])
        return _NOT_MET
    below = [result.trouble for result in results if result.trouble is not None]
    _tell(f"a gate failed: {line}" for line in below)
    _tell(f"a gate held: {one.gate}: {one.figure or 'all rows rightly decline'}" for one in results if not one.trouble)
    return _NOT_MET if below or not is_sent else 0


def _stored(options: Namespace, *, annotated: bool = False) -> Iterator[StoredAnswer] | None:
    """The answers of the tool that the options name; None where they name a file."""
    if (options.data is None) is (options.source is None):
        raise ConfigurationError("give a FILE, or a tool after --from, and not both")
    if options.source is not None:
        return stored_answers(options.source, options.project, options.since, annotated=annotated)
    if options.project or options.since or getattr(options, "to_trace", False):
        raise ConfigurationError("--project, --since and --to-trace are about a tool: name it after --from")
    return None


def _send(evaluation: Evaluation, emitter: Emitter, tool: str) -> bool:
    """Send all scores to the spans that the tool has, and say so; returns whether it took them."""
    is_sent, rows = True, evaluation.all_rows()
    while some := list(islice(rows, _SENT_AT_ONCE)):
        for row in some:
            refusal, language = about_response(row.record)
            emitter.start(row.record).finish(
                ScoredRecord(
                    record=row.record,
                    outcomes=row.outcomes,
                    span=row.record.parent,
                    refusal=refusal,
                    language=language,
                    asked=row.asked,
                )
            )
        is_sent = emitter.flush(_SENDING) and is_sent
    emitter.shutdown(_SENDING)
    what, why = ("the scores", "") if is_sent else ("not all scores", ": the log above says why")
    _tell([f"{what} of {counted(evaluation.rows, 'answer', grouped=True)} go to {tool}{why}"])
    return is_sent


def agree_with_labels(options: Namespace) -> int:
    """Evaluate the file, and print how well its labels agree with metrics that measure them, or are named; returns the exit code."""
    usual = settings_with().metrics
    measures = [metric for metric in MEASURES if metric in usual] or MEASURES[:1]
    metrics = measures if options.metrics is None else options.metrics
    columns = {name: getattr(options, name) for name in _SAME if name in options}
    evaluation = evaluate(options.data, metrics, **columns, judge_share=1.0, progress=True)
    _tell(bad_row_lines(evaluation))
    if not evaluation.labels:
        raise TableError(f"no row of {options.data} has a label that is one of {', '.join(sorted(GOOD | BAD))}")
    found = agreement(evaluation, with_all=options.metrics is not None)
    rows = evaluation.rows + evaluation.bad_row_count
    print_parts([headline(evaluation), f"{len(evaluation.labels):,} of {rows:,} rows have a label"])
    if found is None:
        _tell([f"none of them has a score: {evaluation.why_not_scored}"])
        return _NOT_MET
    table = text_table("metric", "labels\n(good)", "AUROC", "balanced\naccuracy", "labels\nmissing")
    for one in found.metrics:
        figures = ("-" if it is None else str(it) for it in (one.auroc, one.balanced_accuracy, one.missing_labels))
        table.add_row(one.metric, f"{one.labels:,} ({one.good:,})", *figures)
    near = f"In brackets: 95 % intervals. Labels missing: how many more narrow the interval to ±{CLOSE:.2f}."
    told = "Balanced accuracy: of the rows that the metric passes or fails, and does not leave open.\n"
    print_parts([table, near, told, found.rate_in_words])
    return 0


def collect_failures(options: Namespace) -> str:
    """Do what the command asks for; returns what was done, in a sentence."""
    stored = _stored(options, annotated=True)
    data_set = None if options.to is None else data_set_of(options.to)
    if options.output is not None:
        require_jsonl(options.output, "--output")
        require_apart({"the file of rows": options.data}, {"--output": options.output})
    if (options.output is None) is (data_set is None):
        raise ConfigurationError("say where they go: --output FILE.jsonl, or --to phoenix:NAME or mlflow:NAME")
    found: dict[str, dict[str, Any]] = {}

    def collect(record: RagRecord, label: str | None, scores: Sequence[tuple[str, float | None, Any, Any]]) -> None:
        """Make a row that `ragspan evaluate` and `agree` take: people write `pass` or `fail` into its label."""
        metric, _, finding, cause = min(scores, key=lambda one: one[1] or 0.0)
        about = {"label": label, "metric": metric, "finding": finding, "cause": cause}
        row = {**row_of(record), **about, "fails": {name: value for name, value, *_ in scores}}
        texts = json.dumps([row[name] for name in ("record_id", "question", "contexts", "response")])
        key = blake2b(texts.encode(errors="surrogatepass"), digest_size=8).hexdigest()
        found[key] = {KEY: key, **row}

    for answer in stored or ():
        if scores := [(one.metric, one.value, one.finding, None) for one in answer.scores if one.label == "fail"]:
            collect(answer.record, None, scores)
    for row in ResultFile(options.data).rows() if stored is None else ():
        if row.failing:
            failing = [(name, one.value, one.explanation, one.cause) for name, one in row.failing.items()]
            collect(row.record, row.label_word, failing)
    rows = list(found.values())
    added = _add_to_file(options.output, rows) if data_set is None else add_rows(*data_set, rows)
    there = len(rows) - added
    answers = counted(len(rows), "failing answer", grouped=True)
    known = f", {there:,} of which were there already" if there else ""
    return f"{answers} {'is' if len(rows) == 1 else 'are'} in {options.output or options.to}{known}"


def _add_to_file(path: Path, rows: Sequence[dict[str, Any]]) -> int:
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


def _tell(lines: Iterable[str]) -> None:
    for line in lines:
        print(line, file=sys.stderr)  # noqa: T201 - a command's own words
