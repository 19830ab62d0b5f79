"""The catalogue of metrics: by name, with what each asks. Settings, `evaluate`, the report and the documentation read it.

Wherever metrics are taken, names are taken too. A metric of another package is an entry point of the group `ragspan_metric`:
a class or a function. It is called with those of these arguments, by name, that it has: `judge`, the judge of the settings;
`polls`, as in `ContextAdherence`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from ragspan import metrics
from ragspan.arguments import meant, wrong
from ragspan.config import Settings
from ragspan.exceptions import ConfigurationError
from ragspan.installed import load_part, part_names
from ragspan.judges.endpoint import TIMEOUT
from ragspan.judges.judge_catalogue import EMBEDDED, JudgeChoice, judge_of, judge_part
from ragspan.judges.judge_protocols import Judge
from ragspan.judges.jury import Jury
from ragspan.judges.presets import PRESETS
from ragspan.metrics.metric import Guide, Metric

METRICS: Final = "ragspan_metric"
"""The group of entry points."""


BUILT_IN: Final[Mapping[str, Callable[..., Metric]]] = {
    # The name of its class, or the default of the field.
    one.name if isinstance(one.name, str) else one.__dataclass_fields__["name"].default: one
    for one in (getattr(metrics, name) for name in metrics.__all__)
    if getattr(one, "guide", None)
}
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


def metric_part(name: str, of: str = "") -> Callable[..., Metric]:
    """The metric of this name; `of` says where it is from.

    Raises:
        ConfigurationError: there is none, or its package cannot be imported.
    """
    if name in BUILT_IN:  # which is known without reading the installed packages
        return BUILT_IN[name]
    require_known(name, metric_names(), of=of)
    part: Callable[..., Metric] = load_part(METRICS, name, f"there is no metric {name!r} here")
    return part


def require_known(name: str, names: Sequence[str], *, of: str = "") -> None:
    """Raise a `ConfigurationError` that lists the names unless one of them is this one; `of` says where the name is from."""
    if name not in names:
        all_names = ", ".join(names)
        raise ConfigurationError(f"{of}there is no metric {name!r} here{meant(name, names)}; there are: {all_names}")


def metrics_from(
    settings: Settings, chosen: Iterable[str | Metric] | None = None, *, judge: JudgeChoice | None = None
) -> list[Metric]:
    """The chosen metrics, by default the settings', in order; each name gives its metric once.

    The judge of those that are given by name is that of the settings, unless there is another: a judge, a name, or a list for a jury.

    Raises:
        ConfigurationError: there is no such metric, or the judge cannot answer what one of them asks.
    """
    of = "metrics or RAGSPAN_METRICS: " if chosen is None else ""
    given: list[str | Metric] = list(settings.metrics if chosen is None else chosen)
    wanted = [one for place, one in enumerate(given) if not isinstance(one, str) or one not in given[:place]]
    parts = {name: metric_part(name, of) for name in wanted if isinstance(name, str)}
    arguments: dict[str, Any] = {"polls": settings.judge_polls}
    if parts:
        arguments["judge"] = judge_from(settings) if judge is None else _chosen_judge(settings, judge)
    if "faithfulness_hhem" in parts:
        arguments["verifier"] = judge_part("hhem")(device=settings.hhem_device)
    by_name = {
        name: part(**{key: arguments[key] for key in inspect.signature(part).parameters if key in arguments})
        for name, part in parts.items()
    }
    # Two metrics of one name are an error that the engine raises.
    return [by_name[metric] if isinstance(metric, str) else metric for metric in wanted]


def _chosen_judge(settings: Settings, judge: JudgeChoice) -> Judge:
    if isinstance(judge, str) and judge.strip(", "):
        return judge_from(replace(settings, judge=judge))
    if isinstance(judge, (list, tuple)) and judge:
        if all(isinstance(one, str) for one in judge):
            return _chosen_judge(settings, ",".join(judge))
        judges = [_chosen_judge(settings, one) for one in judge]
        return judges[0] if len(judges) == 1 else Jury(judges)
    given: object = judge
    if given is None or isinstance(given, (type, int, float, Iterable)):
        raise wrong(
            "judge", judge, "a judge, or its name, such as 'openai:gpt-4o-mini', or a list of several for a jury"
        )
    return cast("Judge", judge)


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
    if given and len(set(names)) > 1:
        variables = " and ".join(f"RAGSPAN_JUDGE_{name.upper()}" for name in given)
        raise ConfigurationError(
            f"{variables} would count for all of the jury {settings.judge!r}: unset it, and give each judge its own in "
            'RAGSPAN_JUDGE_OPTIONS, such as [{"base_url": "…"}, {}]'
        )
    if set(names) <= set(PRESETS):  # who lets metrics take longer has a slow judge
        given["timeout"] = max(TIMEOUT, settings.metric_timeout / 2)
    if set(names) <= {*PRESETS, "langchain"} and settings.judge_mode != "one_request":
        given["mode"] = settings.judge_mode
    if names == ["hhem"]:
        given["device"] = settings.hhem_device
    try:
        return judge_of(settings.judge, [{**given, **options} for options in settings.judge_options or ({},)])
    except ConfigurationError as error:
        hint = "; its options come from RAGSPAN_JUDGE_OPTIONS" if settings.judge_options else ""
        raise ConfigurationError(f"{error}{hint}") from None
