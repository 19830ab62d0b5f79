"""Settings, and the only place that reads environment variables.

A wrong value is an error at start that names the variable, the value and what is allowed.
"""

from __future__ import annotations

import json
import logging
import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

from ragspan.arguments import AMOUNT, SECONDS, SHARE, SOME_SECONDS, WHOLE, Rule, choice, meant, wrong
from ragspan.exceptions import ConfigurationError
from ragspan.judge_share import JudgeShare
from ragspan.throttled_log import log_line

DropPolicy: TypeAlias = Literal["oldest", "newest"]
SpanStyle: TypeAlias = Literal["answer", "scores"]
JudgingPlace: TypeAlias = Literal["helper", "thread"]
ExportPlace: TypeAlias = Literal["application", "helper"]
UnknownContextsRule: TypeAlias = Literal["skip", "prompt"]
BudgetFallback: TypeAlias = Literal["skip", "overlap", "hhem"]
ContentPlace: TypeAlias = Literal["spans", "events"]
CaptureContent: TypeAlias = bool | ContentPlace
HiddenContent: TypeAlias = Literal["inputs", "outputs", "documents"]

DEFAULT_JUDGE = "overlap"
DEFAULT_METRICS = ("context_adherence", "completeness", "context_utilization", "faithfulness")

OF_RAGSPAN_RUN = "_RAGSPAN_RUN"
"""What `ragspan run` tells the processes that its program starts: the program's folder, and modules to wait for."""

_DIMENSION = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
DIMENSION_NAMES = Rule(
    "at most five names of letters, digits and underscores, such as 'release,tenant'",
    lambda names: (
        not isinstance(names, str)
        and len(names) <= 5  # noqa: PLR2004
        and all(isinstance(name, str) and _DIMENSION.fullmatch(name) for name in names)
    ),
)

FUNCTION_NAME = Rule(
    "module:function, such as 'privacy:mask'",
    lambda name: all(part.isidentifier() for part in (*name.rpartition(":")[0].split("."), name.rpartition(":")[2])),
)
_JUDGE = Rule(
    "a judge's name, such as 'overlap' or 'openai:gpt-4o-mini', or several with commas between them",
    lambda name: name.strip(", "),
)
_METRICS = Rule("one or more names of metrics, such as 'faithfulness,completeness'", bool)
_NAMES = Rule("one or more names, separated by commas, such as 'otel,phoenix'", bool)
_DIMENSIONS = Rule(DIMENSION_NAMES.allowed, lambda names: names and DIMENSION_NAMES.fits(names))
_PRICE = Rule(
    "dollars for a million tokens of input and output, such as '0.15/0.60', or '0.15/0.60/0.075'",
    lambda price: len(price) in {2, 3} and all(0 <= amount < math.inf for amount in price),
)
_ANYTHING = Rule("any text", lambda _: True)

_warned: set[str] = set()


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """The settings of `ragspan.default_engine()`.

    Each field is read from its environment variable, by its type or by the function in its annotation.
    """

    enabled: bool = True
    """`RAGSPAN_ENABLED`: false turns everything off."""
    judge: Annotated[str, _read(_JUDGE, str)] = DEFAULT_JUDGE
    """`RAGSPAN_JUDGE`: `overlap`, the embedded judge, or a provider and a model, such as `anthropic:claude-haiku-4-5`; several
    with commas between them are a jury."""
    judge_base_url: str | None = field(default=None, repr=False)
    """`RAGSPAN_JUDGE_BASE_URL`: the address of an OpenAI-compatible server, in place of the provider's."""
    judge_api_key: str | None = field(default=None, repr=False)
    """`RAGSPAN_JUDGE_API_KEY`: the key for the judge, in place of the provider's variable, such as `OPENAI_API_KEY`."""
    judge_options: Annotated[tuple[Mapping[str, Any], ...], _options] = field(default=(), repr=False)
    """`RAGSPAN_JUDGE_OPTIONS`: further options of the judge in JSON, such as `{"timeout": 60, "max_retries": 1}`; a list has one
    entry for each judge of a jury."""
    judge_price: Annotated[tuple[float, ...] | None, _read(_PRICE, _amounts)] = None
    """`RAGSPAN_JUDGE_PRICE`: US dollars for a million tokens of input, output and, if it differs, input from the prompt
    cache, such as `0.15/0.60/0.075`; else that of OpenAI's model of this name, at OpenAI's own endpoint."""
    metrics: Annotated[tuple[str, ...], _read(_METRICS, _listed)] = DEFAULT_METRICS
    """`RAGSPAN_METRICS`: names, separated by commas; by default the four of `DEFAULT_METRICS`."""
    causes: Annotated[bool | Literal["llm"], _causes] = True
    """`RAGSPAN_CAUSES`: if a response fails, look for the missing support in all retrieved documents. The embedded judge looks;
    with `llm`, a judge that is a language model does. It then reads what did not reach the prompt, also what the application
    masked."""
    unknown_contexts: UnknownContextsRule = "skip"
    """`RAGSPAN_UNKNOWN_CONTEXTS`: `prompt` scores answers without known documents by the text of their prompts; `skip` does
    not score them."""
    hhem_model: str | None = None
    """`RAGSPAN_HHEM_MODEL`: a folder with HHEM's files; else the published model, from the Hugging Face hub or its cache."""
    hhem_device: str = "cpu"
    """`RAGSPAN_HHEM_DEVICE`: torch's name of the device for HHEM: `cpu`, `cuda:0`."""
    hhem_batch_size: Annotated[int | None, _read(WHOLE, int)] = None
    """`RAGSPAN_HHEM_BATCH_SIZE`: the most claims that HHEM computes together, at least 1; else ten."""
    sample_rate: Annotated[float, _read(SHARE, float)] = 1.0
    """`RAGSPAN_SAMPLE_RATE`: the share of answers that are scored, 0..1, chosen by trace id."""
    judge_share: Annotated[JudgeShare | None, _judge_share] = None
    """`RAGSPAN_JUDGE_SHARE`: the share of the answers that the judge is asked about, such as `0.2`; a colon and its random part may
    follow: `0.2:0.1`. The embedded judge reads all. By default the judge is asked about all."""
    max_records_per_second: Annotated[float | None, _read(AMOUNT, float)] = None
    """`RAGSPAN_MAX_RECORDS_PER_SECOND`: records that are accepted, more than 0; else any number."""
    budget_usd_per_day: Annotated[float | None, _read(AMOUNT, float)] = None
    """`RAGSPAN_BUDGET_USD_PER_DAY`: US dollars that judges may spend in a day, more than 0, in each process."""
    budget_tokens_per_minute: Annotated[float | None, _read(AMOUNT, float)] = None
    """`RAGSPAN_BUDGET_TOKENS_PER_MINUTE`: tokens that judges may spend in a minute, more than 0, in each process."""
    budget_requests_per_minute: Annotated[int | None, _read(WHOLE, int)] = None
    """`RAGSPAN_BUDGET_REQUESTS_PER_MINUTE`: requests to judges in a minute, at least 1, in each process."""
    budget_fallback: BudgetFallback = "skip"
    """`RAGSPAN_BUDGET_FALLBACK`: the judge when the budget is spent: `overlap`, `hhem` (faithfulness only), or `skip` for
    none."""
    concurrency: Annotated[int, _read(WHOLE, int)] = 16
    """`RAGSPAN_CONCURRENCY`: records that are scored at the same time, at least 1."""
    queue_size: Annotated[int, _read(WHOLE, int)] = 2048
    """`RAGSPAN_QUEUE_SIZE`: records that may wait, at least 1."""
    metric_timeout: Annotated[float, _read(SOME_SECONDS, float)] = 60.0
    """`RAGSPAN_METRIC_TIMEOUT`: seconds after which a metric has failed, more than 0."""
    exit_timeout: Annotated[float, _read(SECONDS, float)] = 10.0
    """`RAGSPAN_EXIT_TIMEOUT`: seconds that the end of the process may wait for scores, 0 or more."""
    drain_on_sigterm: bool = True
    """`RAGSPAN_DRAIN_ON_SIGTERM`: let SIGTERM wait for scores as the end of the process does."""
    score_wait: Annotated[float, _read(SECONDS, float)] = 10.0
    """`RAGSPAN_SCORE_WAIT`: seconds that an answer's span may wait for its scores, 0 or more."""
    judging: JudgingPlace = "helper"
    """`RAGSPAN_JUDGING`: where judges that need the processor compute, in a `helper` process or a `thread`."""
    export: ExportPlace = "application"
    """`RAGSPAN_EXPORT`: the process that scores and exports whole records, the `application` or its `helper`."""
    sink: Annotated[str | None, _address] = field(default=None, repr=False)
    """`RAGSPAN_SINK`: the address of a broker, such as `nats://broker:4222`. Handlers send records there, and workers
    elsewhere score them."""
    emitters: Annotated[tuple[str, ...], _read(_NAMES, _listed_in_lower_case)] = ("otel",)
    """`RAGSPAN_EMITTERS`: where scores go, names separated by commas: `otel` for OpenTelemetry, and those of tools, such as
    `phoenix`, which write to the spans that `otel` makes or finds."""
    spans: SpanStyle = "answer"
    """`RAGSPAN_SPANS`: `answer` builds the answer's span; `scores` only adds scores to an application's own spans."""
    dimensions: Annotated[tuple[str, ...], _read(_DIMENSIONS, _listed)] = ()
    """`RAGSPAN_DIMENSIONS`: keys of the request's metadata, such as `release,prompt_version,tenant`, at most five, whose values
    go on spans, events and the histogram of scores."""
    retrieval_tools: Annotated[tuple[str, ...], _read(_ANYTHING, _listed)] = ()
    """`RAGSPAN_RETRIEVAL_TOOLS`: names of tools whose results are documents, separated by commas: these tools are searches, in
    LangChain, in LlamaIndex and in the traces that a worker receives, whether they are functions or an MCP server's."""
    redact: Annotated[Callable[[str], str] | str | Literal[False] | None, _read(FUNCTION_NAME, str)] = None
    """`RAGSPAN_REDACT`: `module:function`, which runs over every text of a record and of its explanations before judges,
    emitters and sinks see them. If it fails, the record is dropped."""
    explanations: bool | None = None
    """`RAGSPAN_EXPLANATIONS`: true sends the judges' explanations unchanged, with quotes; false sends none. By default they
    have quotes where content is captured, and counts and places elsewhere."""
    capture_content: CaptureContent = False
    """`RAGSPAN_CAPTURE_CONTENT`, else `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`: send questions, contexts,
    responses and users' ids; `spans` or `events` only there."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """The settings of this process.

        Raises:
            ConfigurationError: a variable has a value that is not allowed.
        """
        environment = os.environ if environment is None else environment
        for words in without_effect(environment):
            if words not in _warned:  # a process reads its settings several times
                _warned.add(words)
                log_line(logging.WARNING, "%s", words)
        values = {
            field: read(name, environment[name].strip())
            for name, (field, read) in _VARIABLES.items()
            if environment.get(name, "").strip()
        }
        content = environment.get(_GENAI_CONTENT, "").strip()
        if content and "capture_content" not in values:
            values["capture_content"] = _genai_content(_GENAI_CONTENT, content)
        return cls(**values)


def retrieval_tools() -> tuple[str, ...]:
    """The names in `RAGSPAN_RETRIEVAL_TOOLS`."""
    return _listed(os.environ.get(f"{_PREFIX}RETRIEVAL_TOOLS", ""))


def job_summary_file() -> str | None:
    """Where a CI system wants the summary of a job, in Markdown: GitHub, Forgejo and Gitea say so; None elsewhere."""
    return os.environ.get("GITHUB_STEP_SUMMARY") or None


def settings_with(**given: Any) -> Settings:
    """The settings of this process, with these values in place of the environment's; None leaves a setting as it is.

    The judge and the metrics are read as their variables would be. A judge that is an object is not a setting, and ignored.

    Raises:
        ConfigurationError: a text or a variable has a value that is not allowed.
    """
    judge = given.get("judge")
    if isinstance(judge, (list, tuple)) and all(isinstance(one, str) for one in judge):
        given["judge"] = ",".join(judge)
    texts = {name: given[name] for name in ("judge", "metrics") if isinstance(given.get(name), str)}
    variables = {f"RAGSPAN_{name.upper()}": text for name, text in texts.items()}
    try:
        settings = Settings.from_environment({**process_environment(), **variables})
    except ConfigurationError as error:
        message = str(error)
        for name in texts:
            message = message.replace(f"RAGSPAN_{name.upper()} is", f"{name} is")
        raise ConfigurationError(message) from None
    others = {name: value for name, value in given.items() if value is not None and name not in {"judge", *texts}}
    return replace(settings, **others)


def hidden_content() -> frozenset[HiddenContent]:
    """The kinds of text that OpenInference's variables hide: each value but a plain no hides."""
    return frozenset(
        what for name, hidden in _HIDING.items() if (variable(name) or "0").lower() not in _NO for what in hidden
    )


def is_enabled() -> bool:
    """False if `RAGSPAN_ENABLED` turns everything off.

    Raises:
        ConfigurationError: its value is neither true nor false.
    """
    value = os.environ.get("RAGSPAN_ENABLED", "").strip()
    return _boolean("RAGSPAN_ENABLED", value) if value else True


def variable(*names: str) -> str | None:
    """The value of another library's variable, or of a command's own: the first that is set and not empty; else None."""
    values = (os.environ.get(name, "").strip() for name in names)
    return next(filter(None, values), None)


def process_environment() -> dict[str, str]:
    """All variables, for another process with the same set-up."""
    return dict(os.environ)


def _boolean(name: str, value: str) -> bool:
    if value.lower() in {"1", "true", "yes", "on"}:
        return True
    if value.lower() in _NO:
        return False
    raise wrong(name, value, "true or false", ("true", "false"))


def _genai_content(name: str, value: str) -> CaptureContent:
    """OpenTelemetry's own switch: a boolean in early versions, a place in later ones."""
    places = list(_GENAI_PLACES)
    if value.upper() in _GENAI_PLACES:
        return _GENAI_PLACES[value.upper()]
    try:
        return _boolean(name, value)
    except ConfigurationError:
        raise wrong(name, value, f"true, false, {', '.join(places[:-1])} or {places[-1]}", places) from None


def _listed(value: str) -> tuple[str, ...]:
    """The parts between commas, without duplicates."""
    return tuple(dict.fromkeys(filter(None, map(str.strip, value.split(",")))))


def _listed_in_lower_case(value: str) -> tuple[str, ...]:
    return _listed(value.lower())


def _amounts(value: str) -> tuple[float, ...]:
    return tuple(map(float, value.split("/")))


def _read(rule: Rule, kind: Callable[[str], Any] = str.lower) -> Callable[[str, str], Any]:
    def read(name: str, value: str) -> Any:
        try:
            found = kind(value)
        except ValueError:
            raise wrong(name, value, rule.allowed) from None
        if not rule.fits(found):
            raise wrong(name, value, rule.allowed, rule.values)
        return found

    return read


def _address(name: str, value: str) -> str:
    if value.partition("://")[2]:
        return value
    # The value is not shown: it may be a part of an address, with its password.
    raise ConfigurationError(f"{name} should be an address, such as 'nats://broker:4222'")


def _options(name: str, value: str) -> tuple[Mapping[str, Any], ...]:
    """The judges' options. No word of an error holds a part of the text, which may have keys in it."""
    try:
        found, where = json.loads(value), ""
    except (ValueError, RecursionError) as error:
        found, where = None, f"; it is not JSON from character {getattr(error, 'pos', 0) + 1} on"
        where += ": JSON has double quotes" if "'" in value else ""
    options = [found] if isinstance(found, dict) else found
    if isinstance(options, list) and options and all(isinstance(one, dict) for one in options):
        return tuple(options)
    example = '{"timeout": 60, "max_retries": 1}'
    raise ConfigurationError(
        f"{name} should be a JSON object, such as {example}, or a list of one for each judge{where}"
    )


def _causes(name: str, value: str) -> bool | Literal["llm"]:
    try:
        return "llm" if value.lower() == "llm" else _boolean(name, value)
    except ConfigurationError:
        raise wrong(name, value, "true, false or llm", ("true", "false", "llm")) from None


def _judge_share(name: str, value: str) -> JudgeShare:
    return JudgeShare.of(value, name)


_PREFIX = "RAGSPAN_"
_NO = frozenset({"0", "false", "no", "off"})
_OF_OTHER_JUDGES = tuple(f"{_PREFIX}JUDGE_{name}" for name in ("OPTIONS", "BASE_URL", "API_KEY", "PRICE"))
"""Settings of a judge that the embedded one has not."""
_GENAI_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_GENAI_PLACES: dict[str, CaptureContent] = {
    "NO_CONTENT": False,
    "SPAN_ONLY": "spans",
    "EVENT_ONLY": "events",
    "SPAN_AND_EVENT": True,
}
_HIDING: dict[str, tuple[HiddenContent, ...]] = {
    "OPENINFERENCE_HIDE_INPUTS": ("inputs",),
    "OPENINFERENCE_HIDE_INPUT_MESSAGES": ("inputs",),
    "OPENINFERENCE_HIDE_INPUT_TEXT": ("inputs",),
    "OPENINFERENCE_HIDE_OUTPUTS": ("outputs", "documents"),  # documents are the output of a search
    "OPENINFERENCE_HIDE_OUTPUT_MESSAGES": ("outputs",),
    "OPENINFERENCE_HIDE_OUTPUT_TEXT": ("outputs",),
    "OPENINFERENCE_HIDE_RETRIEVAL_DOCUMENTS": ("documents",),
}


def _reader(hint: Any) -> Callable[[str, str], Any]:
    """The function that reads a field of this type."""
    if get_origin(hint) is Annotated:
        read: Callable[[str, str], Any] = hint.__metadata__[0]
        return read
    if get_origin(hint) is Literal:
        return _read(choice(*get_args(hint)))
    return _boolean if bool in {hint, *get_args(hint)} else _read(_ANYTHING, str)


_VARIABLES = {
    f"{_PREFIX}{field.upper()}": (field, _reader(hint))
    for field, hint in get_type_hints(Settings, include_extras=True).items()
}


def without_effect(environment: Mapping[str, str] | None = None) -> list[str]:
    """A warning for each `RAGSPAN_` variable that is set in vain.

    That is one which nobody knows, with the known one that it resembles, or one for the judge where none is named that takes it.
    """
    environment = os.environ if environment is None else environment
    return [*_unknown_names(environment), *_for_no_judge(environment)]


def _unknown_names(environment: Mapping[str, str]) -> list[str]:
    unknown = sorted(name for name in environment if name.startswith(_PREFIX) and name not in _VARIABLES)
    if not unknown:
        return []
    from ragspan.installed import part_names  # it is slow, because it reads the installed packages

    of_sinks = tuple(f"{_PREFIX}{name.upper()}_" for name in part_names("ragspan_sink"))  # such as RAGSPAN_NATS_
    return [
        f"{name} is set, but ragspan knows no such variable{meant(name, _VARIABLES, prefix=_PREFIX)}"
        for name in unknown
        if not name.startswith(of_sinks)
    ]


def _for_no_judge(environment: Mapping[str, str]) -> list[str]:
    if environment.get(f"{_PREFIX}JUDGE", "").strip().lower() not in {"", DEFAULT_JUDGE}:
        return []
    given = [name for name in _OF_OTHER_JUDGES if environment.get(name, "").strip()]
    return [
        f"{name} is set, but RAGSPAN_JUDGE names no judge that takes it: the embedded judge sends no request"
        for name in given
    ]
