"""The second check: one small real question to the configured judge."""

from __future__ import annotations

import asyncio
import time

from ragspan.config import Settings
from ragspan.doctor.causes import trouble_with
from ragspan.doctor.findings import Finding, State
from ragspan.exceptions import ConfigurationError, JudgeError
from ragspan.judges.base import Judge, Vote
from ragspan.judges.named import judge_from
from ragspan.judges.session import metered
from ragspan.outcomes import Usage
from ragspan.records import RagRecord
from ragspan.telemetry.suppress import suppressed

_RECORD = RagRecord(
    question="When are parcels handed to the carrier?",
    contexts=["Parcels are packed in the morning. They are handed to the carrier at four in the afternoon."],
    response="Parcels are handed to the carrier at four in the afternoon.",
)


def ask_judge(settings: Settings, seconds: float) -> list[Finding]:
    """Ask for a vote on an answer that its context plainly supports."""
    try:
        judge = judge_from(settings)
    except ConfigurationError as error:
        return [Finding(check="judge", state="failed", found=str(error), is_misuse=True)]
    return [_answer(judge, settings, seconds)]


def _answer(judge: Judge, settings: Settings, seconds: float) -> Finding:
    began = time.monotonic()
    try:
        with suppressed(), metered() as meter:
            [vote, *_] = asyncio.run(asyncio.wait_for(judge.vote_adherence(_RECORD, 1), seconds))
    except asyncio.TimeoutError:
        return _failed(judge, "Timeout", f"no answer within {seconds:.1f} s", _advice("APITimeoutError", None))
    except JudgeError as error:
        trouble = trouble_with(error)
        advice = _advice(error.error_type, trouble)
        found = f"{error} ({trouble})" if trouble else str(error)
        return _failed(judge, error.error_type, found, advice)
    return _verdict(judge, settings, vote, meter.total, time.monotonic() - began)


def _verdict(judge: Judge, settings: Settings, vote: Vote, usage: Usage, seconds: float) -> Finding:
    state: State = "ok"
    found = f"{judge.name} answered in {seconds:.2f} s{_cost(usage)}"
    advice = None
    if settings.judge == "overlap":
        advice = "it compares words; for a language model set RAGSPAN_JUDGE=openai:<model> and OPENAI_API_KEY"
    if not vote.grounded:
        state = "warning"
        found += ", but found an answer ungrounded that its context states word for word"
        advice = "its scores will mislead: take a more capable model"
    facts = {"judge": judge.name, "seconds": round(seconds, 3), "grounded": vote.grounded, **_figures(usage)}
    return Finding(check="judge", state=state, found=found, advice=advice, facts=facts)


def _cost(usage: Usage) -> str:
    if not usage.requests and not usage.input_tokens:
        return ""
    tokens = f" ({usage.input_tokens} tokens in, {usage.output_tokens} out"
    return f"{tokens}, price unknown)" if usage.usd is None else f"{tokens}, {usage.usd:.6f} USD)"


def _figures(usage: Usage) -> dict[str, object]:
    return {
        "requests": usage.requests,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "usd": usage.usd,
    }


def _failed(judge: Judge, error_type: str, message: str, advice: str) -> Finding:
    return Finding(
        check="judge",
        state="failed",
        found=f"{judge.name} gave no answer: {error_type}: {message}",
        advice=advice,
        facts={"judge": judge.name, "error_type": error_type},
    )


_UNREACHABLE = "check the address in RAGSPAN_JUDGE_BASE_URL (or OPENAI_BASE_URL), and that its server is running"

_BY_TROUBLE = {
    "certificate": "its certificate is not trusted: name the file of your certificate authority in SSL_CERT_FILE",
    "tls": "no TLS can be spoken there: is the address to begin with http:// in place of https://?",
    "name": "the host name cannot be resolved: check the address in RAGSPAN_JUDGE_BASE_URL, and the network",
    "refused": _UNREACHABLE,
}

_BY_ERROR = {
    "AuthenticationError": "the key is refused: check RAGSPAN_JUDGE_API_KEY, or else OPENAI_API_KEY",
    "PermissionDeniedError": "the key may not use this model, or not from here: ask who issued it",
    "NotFoundError": "the endpoint knows no such model, or the address lacks its path, which mostly ends in /v1: "
    "check RAGSPAN_JUDGE and RAGSPAN_JUDGE_BASE_URL",
    "RateLimitError": "the account has reached its rate limit or its credit: see the provider's usage page",
    "APITimeoutError": "the endpoint is slow or hangs; a larger --timeout shows which",
    "APIConnectionError": _UNREACHABLE,
    "InternalServerError": "the endpoint itself has failed: see its log or status page",
    "BadRequestError": "the endpoint does not understand the request: does it speak OpenAI's chat protocol?",
    "InvalidVerdict": "the model does not answer in the form that it is asked for: take a more capable one",
    "InvalidResponse": "what answers is no chat endpoint: does the address in RAGSPAN_JUDGE_BASE_URL end in /v1?",
}


def _advice(error_type: str, trouble: str | None) -> str:
    return (
        _BY_TROUBLE.get(trouble or "")
        or _BY_ERROR.get(error_type)
        or "see what the provider's documentation says about this error"
    )
