"""Judges by the names that settings have for them.

A verifier of another package is an entry point of the group `ragspan_verifier`.
"""

from __future__ import annotations

from collections.abc import Callable

from ragspan.config import Settings
from ragspan.installed import load_part
from ragspan.judges.base import Judge, Verifier


def judge_from(settings: Settings) -> Judge:
    """The judge that these settings name."""
    kind, _, model = settings.judge.partition(":")
    if kind == "overlap":
        from ragspan.judges.overlap import OverlapJudge

        return OverlapJudge()
    from ragspan.judges.openai import OpenAIJudge
    from ragspan.judges.prices import Price

    return OpenAIJudge(
        model,
        base_url=settings.judge_base_url,
        api_key=settings.judge_api_key,
        price=Price(*settings.judge_price) if settings.judge_price is not None else None,
    )


def hhem_from(settings: Settings) -> Verifier:
    """The classifier that these settings describe.

    Raises:
        ConfigurationError: its package is not installed.
    """
    options = {} if settings.hhem_model is None else {"model": settings.hhem_model}
    return installed_verifier("hhem")(device=settings.hhem_device, **options)


def installed_verifier(name: str) -> Callable[..., Verifier]:
    """The class of the verifier that an installed package registers with this name.

    Raises:
        ConfigurationError: there is none, or its package cannot be imported.
    """
    missing = f"no installed package has the verifier {name!r}: pip install 'ragspan[{name}]'"
    verifier: Callable[..., Verifier] = load_part("ragspan_verifier", name, missing)
    return verifier
