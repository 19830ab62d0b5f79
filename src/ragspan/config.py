"""Settings, and the only place that reads environment variables.

`Settings` is one table: a row has the name, the type, the default, a sentence, and what is allowed. The variables, the errors of
wrong values and `docs/settings.md` come from it.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from functools import partial
from typing import Any, Literal, TypeAlias, get_args

from ragspan.addresses import without_credentials
from ragspan.arguments import AMOUNT, SECONDS, SHARE, SOME_SECONDS, SOME_SHARE, WHOLE, Rule, meant, one_of, wrong
from ragspan.exceptions import ConfigurationError
from ragspan.process import in_use

SpanStyle: TypeAlias = Literal["answer", "scores"]
JudgingPlace: TypeAlias = Literal["helper", "thread"]
UnknownContextsRule: TypeAlias = Literal["skip", "prompt"]
JudgeMode: TypeAlias = Literal["one_request", "thorough"]
ContentPlace: TypeAlias = Literal["spans", "events"]
CaptureContent: TypeAlias = bool | ContentPlace

DEFAULT_METRICS = ("context_adherence", "faithfulness")
OF_RAGSPAN_RUN = "_RAGSPAN_RUN"
"""What `ragspan run` tells the processes that its program starts: the program's folder, and modules to wait for."""

_PREFIX = "RAGSPAN_"
BOOLEANS: Mapping[str, bool] = {
    **dict.fromkeys(("true", "1", "yes", "on"), True),
    **dict.fromkeys(("false", "0", "no", "off"), False),
}
"""How variables say yes and no."""


# How a variable is read


def _listed(value: str) -> tuple[str, ...]:
    """The parts between commas, without duplicates."""
    return tuple(dict.fromkeys(filter(None, map(str.strip, value.split(",")))))


_DIMENSION = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
DIMENSION_NAMES = Rule(
    "at most five names of letters, digits and underscores, such as 'release,tenant'",
    lambda names: (
        not isinstance(names, str)
        and len(names) <= 5  # noqa: PLR2004
        and all(isinstance(name, str) and _DIMENSION.fullmatch(name) for name in names)
    ),
)
_ANYTHING = Rule("any text", lambda _: True)
_YES_OR_NO = Rule("true or false", lambda _: True)
_OPTIONS = Rule(
    'a JSON object, such as {"timeout": 60, "max_retries": 1}, or a list of one for each judge',
    lambda options: options and all(isinstance(one, dict) for one in options),
)
_WEBHOOK = Rule("an address such as https://hooks.example.com/ragspan", without_credentials)
_CAPTURED = Rule("true, false, spans or events", lambda _: True, get_args(ContentPlace))
_GENAI_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_GENAI_PLACES = {"no_content": False, "span_only": "spans", "event_only": "events", "span_and_event": True}
_GENAI_CAPTURED = Rule(  # a boolean in early versions, a place in later ones
    "true, false, NO_CONTENT, SPAN_ONLY, EVENT_ONLY or SPAN_AND_EVENT", lambda _: True, tuple(_GENAI_PLACES)
)


def _word(text: str, words: Mapping[str, Any] = BOOLEANS) -> Any:
    return words[text.lower()]


def _options(text: str) -> tuple[Any, ...]:
    found = json.loads(text)
    return tuple(found) if isinstance(found, list) else (found,)


def _read(name: str, text: str, *, kind: Callable[[str], Any], rule: Rule, secret: bool = False) -> Any:
    """The value of the variable `name` with this text; no word of an error holds a part of a secret one."""
    with contextlib.suppress(LookupError, ValueError):
        value = kind(text)
        if rule.fits(value):
            return value
    if secret:
        raise ConfigurationError(f"{name} should be {rule.allowed}")
    raise wrong(name, text, rule.allowed, rule.values)


_KINDS: Mapping[type, Callable[[str], Any]] = {bool: _word, int: int, float: float, tuple: _listed}


def _row(
    default: Any,
    sentence: str,
    rule: Rule = _ANYTHING,
    *,
    kind: Callable[[str], Any] | None = None,
    shown: str | None = None,
    secret: bool = False,
) -> Any:
    """A row of the table; `sentence` and `shown`, in place of the default, are for `docs/settings.md`.

    `kind` makes the value of the variable's text, by default as the default's type says.
    """
    kind = kind or _KINDS.get(type(default), str.lower if rule.values else str)
    shown = "none" if shown is None and default in {None, ()} else shown
    read = partial(_read, kind=kind, rule=rule, secret=secret)
    return field(default=default, repr=not secret, metadata={"read": read, "sentence": sentence, "shown": shown})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of `ragspan.default_engine()`, each read from `RAGSPAN_` and its name."""

    # Judge and metrics
    enabled: bool = _row(True, "`false` turns everything off at no cost.", _YES_OR_NO)
    judge: str = _row(
        "overlap",
        "`overlap`, the embedded judge, or a provider and a model such as `anthropic:claude-haiku-4-5`: "
        "[judges](judges.md). Several with commas between them are [a jury](judges.md#a-jury).",
    )
    judge_base_url: str | None = _row(
        None,
        "The address of an OpenAI-compatible server. Logs show only the host.",
        shown="the provider's",
        secret=True,
    )
    judge_api_key: str | None = _row(
        None, "The key for the judge alone.", shown="the provider's variable, such as `OPENAI_API_KEY`", secret=True
    )
    judge_options: tuple[Mapping[str, Any], ...] = _row(
        (),
        'JSON: `{"timeout": 60, "max_retries": 1}`, and [further options](reference/providers.md#options); a list has one '
        "entry for each judge of a jury.",
        _OPTIONS,
        kind=_options,
        secret=True,
    )
    judge_mode: JudgeMode = _row(
        "one_request",
        "Whether an LLM judge is asked all about an answer in `one_request`, or each question by itself (`thorough`).",
        one_of("one_request", "thorough"),
    )
    judge_polls: int = _row(
        3, "Votes and ratings that adherence and completeness ask an LLM judge for; `1` is cheapest.", WHOLE
    )
    judge_when: str | None = _row(
        None,
        "[Which answers are judged](judges.md#which-answers-are-judged), such as `tag=prod and latency>2s`, or `faithfulness: 0.1`.",
        shown="all answers",
    )
    judge_share: float | None = _row(
        None,
        "The share of the answers that the judge is asked about, such as `0.2`: the most doubtful ones, and [a "
        "random part](trust.md#verdicts-where-they-matter). The embedded judge reads all.",
        SOME_SHARE,
        kind=float,
        shown="all answers",
    )
    metrics: tuple[str, ...] = _row(
        DEFAULT_METRICS,
        "Names of [metrics](metrics.md), separated by commas; also of [other packages](own-parts.md#a-name-for-it).",
    )
    unknown_contexts: UnknownContextsRule = _row(
        "skip",
        "`prompt` scores answers without known documents [by the text of their prompts](frameworks.md#documents-that-no-callback-shows).",
        one_of("skip", "prompt"),
    )
    hhem_device: str = _row("cpu", "Where HHEM computes, as torch names it: `cpu`, `cuda:0`.")
    # How much is scored
    sample_rate: float = _row(1.0, "The share of answers that are scored, from 0 to 1, chosen by trace id.", SHARE)
    budget_usd_per_day: float | None = _row(
        None, "Dollars that judging may cost in 24 hours, in each process.", AMOUNT, kind=float
    )
    budget_requests_per_minute: int | None = _row(
        None, "Requests to judges in a minute, in each process.", WHOLE, kind=int
    )
    # Processes and time
    concurrency: int = _row(16, "Records that are scored at the same time.", WHOLE)
    queue_size: int = _row(2048, "Records that may wait; a further one pushes the oldest out.", WHOLE)
    metric_timeout: float = _row(
        60.0,
        "Seconds after which a metric fails. A judge gets half of them for each attempt, at least 30.",
        SOME_SECONDS,
    )
    exit_timeout: float = _row(10.0, "Seconds that the end of the process waits for scores.", SECONDS)
    judging: JudgingPlace = _row(
        "helper", "Where judges compute: in a `helper` process or a `thread`.", one_of("helper", "thread")
    )
    # Where scores go
    emitters: tuple[str, ...] = _row(
        ("otel",),
        "`otel` and `console`; with the extra of its name also [a tool's](tracing-tools.md), such as "
        "`otel,phoenix`. `configure()` uses `console` where no exporter is named.",
        kind=lambda text: _listed(text.lower()),
    )
    sink: str | None = _row(
        None,
        "`nats://broker:4222` sends records to the workers of a [fleet](fleet.md) instead of scoring them here.",
        secret=True,
    )
    alert_webhook: str | None = _row(
        None,
        "An address that gets JSON when more, or fewer, answers of a process fail than usual, at most once an hour.",
        _WEBHOOK,
        secret=True,
    )
    spans: SpanStyle = _row(
        "answer",
        "`answer` makes the answer's span; `scores` adds only score spans, below an application's own spans.",
        one_of("answer", "scores"),
    )
    dimensions: tuple[str, ...] = _row(
        (),
        "`release,prompt_version,tenant`: [metadata by which scores are "
        "grouped](frameworks.md#scores-by-release-prompt-or-tenant), at most five keys.",
        DIMENSION_NAMES,
    )
    retrieval_tools: tuple[str, ...] = _row(
        (), "`search_handbook,lookup`: tools, functions or an MCP server's, whose results are documents."
    )
    capture_content: CaptureContent | None = _row(
        None,
        "Send questions, contexts, responses and users' ids; `spans` or `events` only there. The console shows texts unless "
        "it is `false`: they stay on the machine.",
        _CAPTURED,
        kind=partial(_word, words={**BOOLEANS, "spans": "spans", "events": "events"}),
        shown="`false`, or what `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` says",
    )
    redact: Callable[[str], str] | str | Literal[False] | None = _row(
        None,
        "`module:function`: runs over [all text](attributes.md#redaction) before judges, emitters and sinks see "
        "it. If it fails, the record is dropped.",
    )
    explanations: bool | None = _row(
        None,
        "`true` sends explanations with their quotes, `false` sends none. By default they quote only with "
        "content, and [give counts and places](attributes.md#content) without.",
        _YES_OR_NO,
        kind=_word,
        shown="as content",
    )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """The settings of this process.

        Raises:
            ConfigurationError: a variable has a value that is not allowed.
        """
        environment = os.environ if environment is None else environment
        for words in without_effect(environment):
            in_use.say_once(logging.WARNING, words)
        values = {
            row.name: row.metadata["read"](name, environment[name].strip())
            for name, row in VARIABLES.items()
            if environment.get(name, "").strip()
        }
        content = environment.get(_GENAI_CONTENT, "").strip()
        if content and "capture_content" not in values:
            place = partial(_word, words={**BOOLEANS, **_GENAI_PLACES})
            values["capture_content"] = _read(_GENAI_CONTENT, content, kind=place, rule=_GENAI_CAPTURED)
        if _is_subinterpreter():
            values["enabled"] = False
        return cls(**values)


VARIABLES: Mapping[str, Field[Any]] = {f"{_PREFIX}{row.name.upper()}": row for row in fields(Settings)}
"""The rows of the table, by the names of their variables."""


def settings_with(**given: Any) -> Settings:
    """The settings of this process, with these values in place of the environment's; None leaves a setting as it is.

    The judge and the metrics are read as their variables would be. A judge that is an object is not a setting, and ignored.

    Raises:
        ConfigurationError: a text or a variable has a value that is not allowed.
    """
    judge = given.pop("judge", None)
    if isinstance(judge, (list, tuple)) and all(isinstance(one, str) for one in judge):
        judge = ",".join(judge)
    if isinstance(judge, str):
        given["judge"] = judge
    if isinstance(metrics := given.get("metrics"), str):
        given["metrics"] = _listed(metrics)
    return replace(Settings.from_environment(), **{name: value for name, value in given.items() if value is not None})


# Single variables


def variable(*names: str) -> str | None:
    """The value of another library's variable, or of a command's own: the first that is set and not empty; else None."""
    values = (os.environ.get(name, "").strip() for name in names)
    return next(filter(None, values), None)


def process_environment() -> dict[str, str]:
    """All variables, for another process with the same set-up."""
    return dict(os.environ)


def retrieval_tools() -> tuple[str, ...]:
    """The names in `RAGSPAN_RETRIEVAL_TOOLS`."""
    return _listed(os.environ.get(f"{_PREFIX}RETRIEVAL_TOOLS", ""))


def is_enabled() -> bool:
    """False if `RAGSPAN_ENABLED` turns everything off, and in a subinterpreter.

    Raises:
        ConfigurationError: its value is neither true nor false.
    """
    name = "RAGSPAN_ENABLED"
    text = variable(name)
    return (text is None or bool(VARIABLES[name].metadata["read"](name, text))) and not _is_subinterpreter()


def _is_subinterpreter() -> bool:
    """Whether this is not the process's main interpreter. Python aborts or hangs at the end of another one that has daemon threads."""
    try:
        module: Any = importlib.import_module("_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters")
        current: Any = module.get_current()
        number = int(current[0] if isinstance(current, tuple) else current)
    except (ImportError, TypeError, ValueError):  # PyPy
        return False
    if number:
        in_use.say_once(
            logging.WARNING,
            "ragspan is off in a subinterpreter: Python cannot end one that has threads. With mod_wsgi, set "
            "WSGIApplicationGroup %{GLOBAL}; with uWSGI, --single-interpreter",
        )
    return bool(number)


def without_effect(environment: Mapping[str, str] | None = None) -> list[str]:
    """A warning for each `RAGSPAN_` variable that nobody knows, with the known one that it resembles."""
    environment = os.environ if environment is None else environment
    unknown = sorted(name for name in environment if name.startswith(_PREFIX) and name not in VARIABLES)
    if not unknown:
        return []
    from ragspan.installed import part_names  # it is slow, because it reads the installed packages

    of_sinks = tuple(f"{_PREFIX}{name.upper()}_" for name in part_names("ragspan_sink"))  # such as RAGSPAN_NATS_
    return [
        f"{name} is set, but ragspan knows no such variable{meant(name, VARIABLES, prefix=_PREFIX)}"
        for name in unknown
        if not name.startswith(of_sinks)
    ]
