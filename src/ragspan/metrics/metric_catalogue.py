"""The catalogue of metrics: by name, with what each asks. Settings, `evaluate`, the report and the documentation read it.

Wherever metrics are taken, names are taken too. A metric of another package is an entry point of the group `ragspan_metric`:
a class or a function. It is called with those of these arguments, by name, that it has: `judge`, the judge of the settings;
`polls`, `causes` and `llm_causes`, as in `Faithfulness`; `device`, `batch_size` and `model`, those of HHEM.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, cast

from ragspan import metrics
from ragspan.arguments import meant, wrong
from ragspan.config import Settings
from ragspan.exceptions import ConfigurationError
from ragspan.installed import load_part, part_names
from ragspan.judges.endpoint import TIMEOUT
from ragspan.judges.judge_catalogue import EMBEDDED, JudgeChoice, judge_of, judge_part
from ragspan.judges.judge_protocols import Judge, Verifier
from ragspan.judges.jury import Jury
from ragspan.judges.presets import PRESETS
from ragspan.metrics.metric import Guide, JudgedMetric, Metric

METRICS: Final = "ragspan_metric"
"""The group of entry points."""


def _name_of(metric: type[JudgedMetric[Any]]) -> str:
    """The name of its class, or the default of the field."""
    name: object = metric.name
    return name if isinstance(name, str) else str(metric.__dataclass_fields__["name"].default)


BUILT_IN: Final[Mapping[str, Callable[..., Metric]]] = MappingProxyType(
    {_name_of(one): one for one in (getattr(metrics, name) for name in metrics.__all__) if getattr(one, "guide", None)}
)
"""The metrics of this package, in the order of `ragspan.metrics.__all__`."""


def metric_names() -> list[str]:
    """The names of all metrics, those of other packages last."""
    return list(dict.fromkeys([*BUILT_IN, *part_names(METRICS)]))


def guide_of(name: str) -> Guide | None:
    """What a report says about a metric: its `guide`, or else the first line of its docstring; None if there is neither."""
    if name not in BUILT_IN and name not in part_names(METRICS):
        return None  # given as an object
    part = metric_part(name)
    about = inspect.cleandoc(part.__doc__ or "").partition("\n")[0]
    own: Guide | None = getattr(part, "guide", None)
    return own or (Guide(about) if about and not about.startswith(f"{part.__name__}(") else None)


def metric_part(name: str) -> Callable[..., Metric]:
    """The metric of this name.

    Raises:
        ConfigurationError: there is none, or its package cannot be imported.
    """
    if name in BUILT_IN:
        return BUILT_IN[name]
    require_known(name, metric_names())
    part: Callable[..., Metric] = load_part(METRICS, name, f"there is no metric {name!r} here")
    return part


def metrics_from(
    settings: Settings, chosen: Iterable[str | Metric] | None = None, *, judge: JudgeChoice | None = None
) -> list[Metric]:
    """The chosen metrics, in order; each name gives its metric once.

    Args:
        settings: have the judge of the metrics that are given by name, and the options of HHEM.
        chosen: names and metrics; None is those of the settings.
        judge: in place of the settings' one: a judge, a name, or a list for a jury.

    Raises:
        ConfigurationError: there is no such metric, or the judge cannot answer what one of them asks.
    """
    wanted = list(dict.fromkeys(settings.metrics)) if chosen is None else list(chosen)
    for name in settings.metrics if chosen is None else ():
        require_known(name, metric_names(), of="metrics or RAGSPAN_METRICS: ")
    parts = {name: metric_part(name) for name in wanted if isinstance(name, str)}
    asked = _chosen_judge(settings, judge) if parts else None
    arguments = {
        "judge": asked,
        "polls": settings.judge_polls,
        "causes": settings.causes is not False,
        "llm_causes": settings.causes == "llm",
        **_of_hhem(settings),
    }
    made = {name: _made(part, arguments) for name, part in parts.items()}
    # A name gives nothing the second time; two metrics of one name are an error that the engine raises.
    return [
        made.pop(metric) if isinstance(metric, str) else metric
        for metric in wanted
        if not isinstance(metric, str) or metric in made
    ]


def _chosen_judge(settings: Settings, judge: JudgeChoice | None) -> Judge:
    if judge is None:
        return judge_from(settings)
    if isinstance(judge, (list, tuple)) and judge:
        for place, one in enumerate(judge):
            _require_judge(f"judge[{place}]", one)
    else:
        _require_judge("judge", judge, ", or a list of several for a jury")
    if isinstance(judge, str):
        return judge_from(replace(settings, judge=judge))
    if not isinstance(judge, (list, tuple)):
        return cast("Judge", judge)
    if all(isinstance(one, str) for one in judge):
        return judge_from(replace(settings, judge=",".join(judge)))
    judges = [_chosen_judge(settings, one) for one in judge]
    return judges[0] if len(judges) == 1 else Jury(judges)


def _require_judge(argument: str, value: object, more: str = "") -> None:
    """Raise a `ConfigurationError` unless it may be a judge or a name; a metric says what a judge of one's own lacks."""
    is_client = type(value).__module__.partition(".")[0] == "openai"
    is_judge = not (value is None or is_client or isinstance(value, (type, int, float, Iterable)))
    if is_judge or (isinstance(value, str) and value.strip(", ")):
        return
    hint = "; make one of the client: OpenAIJudge('gpt-4o-mini', client=…)" if is_client else ""
    raise wrong(argument, value, f"a judge, or its name, such as 'openai:gpt-4o-mini'{more}{hint}")


def judge_from(settings: Settings) -> Judge:
    """The judge, or the jury, that these settings name.

    Raises:
        ConfigurationError: there is no such judge, or its key, its address or an option is missing or wrong; or an address or
            a key is set for a jury of several providers.
    """
    names = [name.partition(":")[0].strip().lower() for name in settings.judge.split(",") if name.strip()]
    if names == [EMBEDDED]:
        return judge_of(settings.judge, ())  # it asks nobody, so that these settings are another judge's
    given: dict[str, Any] = {"base_url": settings.judge_base_url, "api_key": settings.judge_api_key}
    given = {name: value for name, value in given.items() if value is not None}
    shared = list(given) if len(set(names)) > 1 else []
    if shared:
        variables = " and ".join(f"RAGSPAN_JUDGE_{name.upper()}" for name in shared)
        raise ConfigurationError(
            f"{variables} would count for all of the jury {settings.judge!r}: unset it, and give each judge its own in "
            'RAGSPAN_JUDGE_OPTIONS, such as [{"base_url": "…"}, {}]'
        )
    if set(names) <= set(PRESETS):  # who lets metrics take longer has a slow judge
        given["timeout"] = max(TIMEOUT, settings.metric_timeout / 2)
    if names == ["hhem"]:
        given |= {name: value for name, value in _of_hhem(settings).items() if value is not None}
    try:
        return judge_of(settings.judge, [{**given, **options} for options in settings.judge_options or ({},)])
    except ConfigurationError as error:
        named = {name for options in settings.judge_options for name in options}
        if any(re.search(rf"\b{re.escape(name)}\b", str(error)) for name in named):
            raise ConfigurationError(f"RAGSPAN_JUDGE_OPTIONS: {error}") from None
        raise


def hhem_from(settings: Settings) -> Verifier:
    """The classifier that these settings describe.

    Raises:
        ConfigurationError: its package is not installed.
    """
    options = {name: value for name, value in _of_hhem(settings).items() if value is not None}
    verifier: Verifier = judge_part("hhem")(**options)
    return verifier


def require_known(name: str, names: Sequence[str], *, of: str = "") -> None:
    """Raise a `ConfigurationError` that lists the names unless one of them is this one; `of` says where the name is from."""
    if name in names:
        return
    raise ConfigurationError(f"{of}there is no metric {name!r} here{meant(name, names)}; there are: {', '.join(names)}")


def _made(part: Callable[..., Metric], arguments: Mapping[str, Any]) -> Metric:
    """The metric, with those of these arguments that it has."""
    parameters = inspect.signature(part).parameters
    return part(**{name: value for name, value in arguments.items() if name in parameters})


def _of_hhem(settings: Settings) -> dict[str, Any]:
    return {"device": settings.hhem_device, "model": settings.hhem_model}
