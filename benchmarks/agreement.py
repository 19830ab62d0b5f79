"""How well a judge agrees with people.

    python benchmarks/agreement.py DIRECTORY [--judge overlap|openai:MODEL|hhem] [--mode one_request|thorough] [--metric NAME] [--set NAME] [--rows N]
        [--captured template|hand] [--json FILE]

DIRECTORY holds sets of human judgements, a `NAME.jsonl.gz` each, whose rows have `question`, `contexts`, `response`,
`source_id` and the label `supported`; where there are any, ratings from 1 to 4 as `faithfulness` and `completeness`
(`{"mean": 3.67, "votes": [4, 3, 4]}`), and other judges' scores as `recorded`. Rows without contexts are left out, an
answer of which the judge cannot tell counts half and another one without a score 0, and an answer counts as complete from a mean
rating of 3.5.

For each set and label a table shows the judge's metrics, the best first, and beside them the recorded judges, the answer's
shortness, which any judge should beat, and one annotator against the mean of the others:

- the area under the ROC curve: how probably a supported answer has a higher value than one that is not; .5 is chance;
- how far the judge's best metric is ahead in it, or in an annotator's row, ahead of the annotator against the same means;
- Spearman's correlation with the mean rating, where people rated;
- balanced accuracy at the metric's own threshold.

In brackets are 95 % intervals from a bootstrap over sources, since answers to one source are not independent. Shares of
supported answers differ between sets; accuracy and F1 would tell more of the sets than of the judge.

"Held out" is balanced accuracy on the half of the sources that the embedded judge's calibration was not fitted on.

`--captured` has each row answered by a LangChain chain with a system prompt of 60 to 500 words, which a template has or the
program writes by hand, and judges the record that ragspan makes of it, background included.

Before a language model is asked, the program says about what it will cost; a bar shows how far it is. `--mode` asks it all about an
answer in one request, or each question by itself. `--judge openai:MODEL` takes `OPENAI_API_KEY`, or `--base-url` of a compatible server. `--judge hhem` verifies the embedded
judge's sentences. `--rows 100` takes about as many rows of each set, whole sources drawn with `--seed`; `--quick` is that
with fewer resamples.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import json
import sys
from dataclasses import asdict
from pathlib import Path

from agreeing.comparison import METRIC_LABELS
from agreeing.figures import RESAMPLES
from agreeing.judgements import read_sets
from agreeing.judging import UnknownJudgeError, columns_of, expected_usage, metrics_of
from agreeing.programs import PROMPTS, captured
from agreeing.report import means_of, report_on, set_tables, summary
from rich.console import Console
from rich.progress import Progress

from ragspan.exceptions import ConfigurationError
from ragspan.usage import Usage

CONCURRENCY = 16
"""Answers that are judged at a time."""
SEED = 7
QUICK_ROWS, QUICK_RESAMPLES = 40, 100


def main() -> None:
    arguments = parsed()
    try:
        metrics = metrics_of(arguments.judge, base_url=arguments.base_url, mode=arguments.mode)
    except (UnknownJudgeError, ConfigurationError) as error:
        raise SystemExit(str(error)) from None
    metrics = [metric for metric in metrics if metric.name in (arguments.metric or METRIC_LABELS)]
    sets = read_sets(arguments.directory, rows=arguments.rows, seed=arguments.seed)
    sets = [one for one in sets if one.name in (arguments.set or [one.name])]
    if arguments.captured:
        sets = [captured(one, arguments.captured, arguments.seed) for one in sets]

    console = Console(width=None if sys.stdout.isatty() else 150)
    reports, usage = [], Usage()
    expected, dollars = expected_usage(metrics, sets)
    if expected.requests:
        price = "an unknown price" if dollars is None else f"about ${dollars:.2f}"
        console.print(f"{arguments.judge}, {arguments.mode}: about {expected}, for {price}. Ctrl-C ends it.")
    for judged in sets:
        with Progress(console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task(judged.name, total=len(judged.judgements))
            judging = columns_of(
                metrics,
                judged.judgements,
                concurrency=arguments.concurrency,
                on_answer=functools.partial(progress.advance, task),
            )
            columns, used = asyncio.run(judging)
        usage += used
        if columns:
            reports.append(report_on(judged, columns, seed=arguments.seed, resamples=arguments.resamples))
            for part in set_tables(reports[-1]):
                console.print(part)
    if not reports:
        raise SystemExit("people judged nothing of what these metrics tell")
    console.print(summary(reports, with_targets=arguments.judge == "overlap"))
    if usage.requests:
        console.print(f"Judging took {usage}.")
    if arguments.json:
        means = means_of(reports)
        report = {
            "judge": arguments.judge,
            "mode": arguments.mode,
            "rows": arguments.rows,
            "seed": arguments.seed,
            "resamples": arguments.resamples,
            "sets": [one.as_data() for one in reports],
            "means": means.as_data() if means else None,
            "usage": asdict(usage),
        }
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="How well a judge agrees with people.")
    parser.add_argument("directory", type=Path, help="sets of human judgements, as NAME.jsonl.gz")
    parser.add_argument("--judge", default="overlap", help="overlap, openai:MODEL, hhem or hhem:FOLDER")
    parser.add_argument("--mode", choices=("one_request", "thorough"), default="one_request", help="of openai:MODEL")
    parser.add_argument("--base-url", help="of an OpenAI-compatible server")
    parser.add_argument(
        "--metric", action="append", choices=METRIC_LABELS, help="only this; may be given several times"
    )
    parser.add_argument("--set", action="append", metavar="NAME", help="only this; may be given several times")
    parser.add_argument("--captured", choices=PROMPTS, help="as a program with such a system prompt is captured")
    parser.add_argument("--rows", type=int, help="about as many rows of each set")
    parser.add_argument("--concurrency", type=int, default=CONCURRENCY, help="answers that are judged at a time")
    parser.add_argument("--seed", type=int, default=SEED, help="of the resamples, and of the rows that are drawn")
    parser.add_argument("--resamples", type=int, default=RESAMPLES)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROWS} rows, {QUICK_RESAMPLES} resamples")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rows, arguments.resamples = arguments.rows or QUICK_ROWS, QUICK_RESAMPLES
    return arguments


if __name__ == "__main__":
    main()
