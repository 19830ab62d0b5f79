"""`ragspan judges`: which judges there are, and what one of them is like."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from ragspan.addresses import shown_url
from ragspan.config import settings_with
from ragspan.exceptions import ConfigurationError, JudgeError
from ragspan.installed import part_sources
from ragspan.judges.judge_catalogue import EMBEDDED, JUDGES
from ragspan.judges.presets import PRESETS, Preset
from ragspan.records import RagRecord
from ragspan.usage import Usage

if TYPE_CHECKING:
    from ragspan.judges.judge_protocols import Judge
    from ragspan.judges.session import Settle

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
    """Ask a judge for three votes on a small record, and say what it takes, what it answered and what that costs.

    What the votes are expected to cost is said before they are asked for. RAGSPAN_JUDGE_* counts.

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
        address = shown_url(preset.base_url) if preset.base_url is not None else preset.shown_address
        yield f"{preset.name}:<model>", _key(preset), address
    for name, source in part_sources(JUDGES).items():
        yield name, "", f"from the package {source}"


def _key(preset: Preset) -> str:
    if preset.key_variable is not None:
        return f"{preset.key_variable} is set"
    if not preset.keys:
        return "none needed"
    return f"{' or '.join(preset.keys)}: not set" + ("" if preset.needs_key else ", may not be needed")


@dataclass(slots=True)
class _Purse:
    """Says what each request is expected to take before it is sent; an `Allowance` that allows all."""

    name: str
    usage: list[Usage] = field(default_factory=list)

    def reserve(self, expected: Usage) -> Settle:
        cost = "its price is not known" if expected.usd is None else f"${expected.usd:.6f}"
        what = f"about {expected.input_tokens:,} tokens in and {expected.output_tokens:,} out"
        typer.echo(f"{self.name}: asks now, {what}: {cost}")
        return self.usage.append


def _checked(judge: Judge) -> bool:
    """Ask the judge, and tell; whether it answered, and found the response grounded."""
    from ragspan.judges.session import JudgingSession, UsageMeter, judging

    meter = UsageMeter()
    began = time.monotonic()
    try:
        with judging(JudgingSession(record=_RECORD, meter=meter, allowance=_Purse(judge.name))):
            votes = asyncio.run(judge.vote_adherence(_RECORD, _VOTES))
    except JudgeError as error:
        typer.echo(f"{judge.name}: no answer: {error.error_type}: {error}")
        return False
    grounded = sum(vote.grounded for vote in votes)
    typer.echo(
        f"{judge.name}: {grounded} of {len(votes)} votes find a good answer grounded, in {time.monotonic() - began:.1f} s"
    )
    for line in _learned(judge, meter.total):
        typer.echo(f"  {line}")
    return 2 * grounded > _VOTES


def _learned(judge: Judge, used: Usage) -> Iterator[str]:
    takes = getattr(getattr(judge, "client", None), "takes", None)
    if takes is not None:
        yield f"schema       {_FORMATS[takes.response_format]}"
        is_one_each = not takes.takes("n") or used.requests > 1
        yield f"n            {'one vote a request' if is_one_each else f'{_VOTES} votes in one request'}"
        yield f"temperature  {'sent, and not refused' if takes.takes('temperature') else 'left out'}"
        if others := sorted(takes.left_out - {"n", "temperature"}):
            yield f"left out     {', '.join(others)}, which it refuses"
    if used.requests:
        tokens = f"{used.input_tokens:,} in ({used.cached_tokens:,} from the cache), {used.output_tokens:,} out"
        yield f"requests     {used.requests}"
        yield f"tokens       {tokens if used.input_tokens else 'it reports none'}"
        price = getattr(judge, "price", None)
        unknown = 'not known: RAGSPAN_JUDGE_OPTIONS={"price": [input, output]}, in dollars for a million tokens'
        rates = "" if price is None else f" at ${price.input:g} and ${price.output:g} for a million tokens"
        yield f"price        {unknown if used.usd is None else f'${used.usd:.6f}{rates}'}"


_FORMATS = {
    "json_schema": "sent, and not refused",
    "json_object": "left out; JSON mode is sent",
    "none": "left out, and JSON mode too: replies are read as strictly",
}
