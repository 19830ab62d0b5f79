"""What the record says about the judge: whether it answered, how fast, for how much, or why not."""

from __future__ import annotations

import importlib
from functools import reduce
from operator import add

from ragspan.config import Settings, variable
from ragspan.doctor.causes import trouble_with
from ragspan.doctor.findings import Finding
from ragspan.doctor.watching import WatchedRecord
from ragspan.judges.base import Judge
from ragspan.outcomes import MetricFailure, Score, ScoredRecord, Usage

_GROUNDEDNESS = ("context_adherence", "faithfulness")


def judge_finding(settings: Settings, judge: Judge, watched: WatchedRecord) -> Finding:
    """One finding for all metrics: they have one judge."""
    if not isinstance(watched.result, ScoredRecord):
        reason = watched.result.reason if watched.result else "it was not scored in time"
        return Finding(
            check="judge", state="skipped", found=f"{judge.name} was not asked: the record was dropped ({reason})"
        )
    outcomes = watched.result.outcomes
    failures = [outcome for outcome in outcomes.values() if isinstance(outcome, MetricFailure)]
    scores = [outcome for outcome in outcomes.values() if isinstance(outcome, Score)]
    if failures and not scores:
        return _failed(settings, judge, next((one for one in failures if one.error_type in _BY_ERROR), failures[0]))
    usage = reduce(add, (score.usage for score in scores if score.usage), Usage())
    found = f"{judge.name} answered in {watched.seconds:.2f} s{_cost(usage)}"
    facts = {
        "judge": judge.name,
        "seconds": round(watched.seconds, 3),
        "requests": usage.requests,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "usd": usage.usd,
    }
    misjudged = [
        name for name in _GROUNDEDNESS if isinstance(score := outcomes.get(name), Score) and score.label == "fail"
    ]
    if misjudged:
        found += f", but found an answer ungrounded that its context states word for word ({', '.join(misjudged)})"
        advice = "its scores will mislead: take a more capable model"
        return Finding(check="judge", state="warning", found=found, advice=advice, facts=facts)
    hint = "it compares words; for a language model set RAGSPAN_JUDGE=openai:<model> and OPENAI_API_KEY"
    return Finding(
        check="judge", state="ok", found=found, advice=hint if settings.judge == "overlap" else None, facts=facts
    )


def _cost(usage: Usage) -> str:
    if not usage.requests and not usage.input_tokens:
        return ""
    tokens = f" ({usage.input_tokens} tokens in, {usage.output_tokens} out"
    return f"{tokens}, price unknown)" if usage.usd is None else f"{tokens}, {usage.usd:.6f} USD)"


def _failed(settings: Settings, judge: Judge, failure: MetricFailure) -> Finding:
    trouble = _connection_trouble(settings) if failure.error_type == "APIConnectionError" else None
    advice = _BY_TROUBLE.get(trouble or "") or _BY_ERROR.get(failure.error_type)
    found = f"{judge.name} gave no answer: {failure.error_type}: {failure.message}" + (
        f" ({trouble})" if trouble else ""
    )
    return Finding(
        check="judge",
        state="failed",
        found=found,
        advice=advice or "see what the provider's documentation says about this error",
        facts={"judge": judge.name, "error_type": failure.error_type},
    )


def _connection_trouble(settings: Settings) -> str | None:
    """Why no connection can be made. The client's error says only that there is none."""
    address = settings.judge_base_url or variable("OPENAI_BASE_URL")
    if not address:
        return None
    try:
        importlib.import_module("httpx").get(address, timeout=2.0)  # what the client connects with
    except Exception as error:  # noqa: BLE001 - whatever it is
        return trouble_with(error)
    return None


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
    "timeout": "the endpoint is slow or hangs; a larger --timeout shows which, and RAGSPAN_METRIC_TIMEOUT allows for it",
    "APITimeoutError": "the endpoint is slow or hangs; a larger --timeout shows which",
    "APIConnectionError": _UNREACHABLE,
    "InternalServerError": "the endpoint itself has failed: see its log or status page",
    "BadRequestError": "the endpoint does not understand the request: does it speak OpenAI's chat protocol?",
    "InvalidVerdict": "the model does not answer in the form that it is asked for: take a more capable one",
    "InvalidResponse": "what answers is no chat endpoint: does the address in RAGSPAN_JUDGE_BASE_URL end in /v1?",
}
