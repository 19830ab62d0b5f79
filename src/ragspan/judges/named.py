"""Judges by name, as settings name them."""

from __future__ import annotations

from ragspan.config import Settings
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
        ConfigurationError: its packages are not installed.
    """
    from ragspan.judges.hhem import HHEMVerifier

    if settings.hhem_model is None:
        return HHEMVerifier(device=settings.hhem_device)
    return HHEMVerifier(model=settings.hhem_model, device=settings.hhem_device)
