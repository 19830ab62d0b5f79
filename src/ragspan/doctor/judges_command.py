"""`ragspan judges`: which judges there are, and whether one of them answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from ragspan.addresses import shown_url
from ragspan.config import settings_with
from ragspan.exceptions import ConfigurationError, JudgeError
from ragspan.installed import part_sources
from ragspan.judges.judge_catalogue import EMBEDDED, JUDGES
from ragspan.judges.presets import PRESETS
from ragspan.records import RagRecord

if TYPE_CHECKING:
    from ragspan.judges.judge_protocols import Judge

judges = typer.Typer(help="Which judges there are; `check` asks one.", invoke_without_command=True)

_VOTES = 3
_RECORD = RagRecord(
    question="When are card payments settled?",
    contexts=["Card payments are settled every night at 23:00.", "Cash is settled by hand."],
    response="Card payments are settled every night.",
    name="ragspan judges check",
)


@judges.callback()
def listed(context: typer.Context) -> None:
    """List the judges by name, with the address that they ask, and whether their key is set.

    A name and a model go into RAGSPAN_JUDGE, configure(judge=...) and --judge. No key is shown.
    """
    if context.invoked_subcommand is None:
        rows = [("name", "key", "address"), *_rows()]
        widths = [max(len(row[column]) for row in rows) for column in range(2)]
        for name, key, address in rows:
            typer.echo(f"{name.ljust(widths[0])}  {key.ljust(widths[1])}  {address}".rstrip())


@judges.command()
def check(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Such as openai:gpt-4o-mini; else RAGSPAN_JUDGE.")
    ] = None,
) -> None:
    """Ask a judge for three votes on a small record, and say what it answered, and what that took.

    RAGSPAN_JUDGE_* counts.

    Exit codes: 0 it answered; 1 it did not, or found a good answer bad; 2 there is no such judge, or its key is missing.
    """
    from ragspan.judges.jury import Jury
    from ragspan.metrics.metric_catalogue import judge_from

    try:
        judge = judge_from(settings_with(judge=name))
    except ConfigurationError as error:
        typer.echo(f"ragspan judges: {error}", err=True)
        raise typer.Exit(2) from None
    results = [_checked(one) for one in (judge.judges if isinstance(judge, Jury) else [judge])]
    raise typer.Exit(0 if all(results) else 1)


def _rows() -> Iterator[tuple[str, str, str]]:
    yield EMBEDDED, "none needed", "none: it compares words in this process"
    for preset in PRESETS.values():
        key = "none needed"
        if preset.key_variable is not None:
            key = f"{preset.key_variable} is set"
        elif preset.keys:
            key = f"{' or '.join(preset.keys)}: not set" + ("" if preset.needs_key else ", may not be needed")
        address = shown_url(preset.base_url) if preset.base_url is not None else preset.shown_address
        yield f"{preset.name}:<model>", key, address
    for name, source in part_sources(JUDGES).items():
        yield name, "", f"from the package {source}"


def _checked(judge: Judge) -> bool:
    """Ask the judge, and tell; whether it answered, and found the response grounded."""
    from ragspan.judges.session import JudgingSession, UsageMeter, judging

    meter = UsageMeter()
    began = time.monotonic()
    try:
        with judging(JudgingSession(record=_RECORD, meter=meter)):
            votes = asyncio.run(judge.vote_adherence(_RECORD, _VOTES))
    except JudgeError as error:
        typer.echo(f"{judge.name}: no answer: {error.error_type}: {error}")
        return False
    grounded = sum(vote.grounded for vote in votes)
    took = f"{time.monotonic() - began:.1f} s"
    typer.echo(f"{judge.name}: {grounded} of {len(votes)} votes find a good answer grounded, in {took}")
    used = meter.total
    if used.requests:
        unknown = (
            'its price is not known: RAGSPAN_JUDGE_OPTIONS={"price": [input, output]}, dollars for a million tokens'
        )
        price = unknown if used.usd is None else f"${used.usd:.6f}"
        typer.echo(f"  requests {used.requests}, tokens {used.input_tokens:,} in, {used.output_tokens:,} out; {price}")
    return 2 * grounded > _VOTES
