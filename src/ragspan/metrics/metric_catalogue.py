"""The catalogue of metrics: by name, with what each asks. Settings, `evaluate`, the report and the documentation read it.

Wherever metrics are taken, names are taken too. A metric of another package is an entry point of the group `ragspan_metric`:
a class or a function. It is called with those of these arguments, by name, that it has: `judge`, the judge of the settings;
`causes` and `llm_causes`, as in `Faithfulness`; `device`, `batch_size` and `model`, those of HHEM.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple, cast

from ragspan.arguments import meant, wrong
from ragspan.config import Settings
from ragspan.exceptions import ConfigurationError
from ragspan.installed import load_part, part_names
from ragspan.judges.endpoint import TIMEOUT
from ragspan.judges.judge_catalogue import EMBEDDED, JudgeChoice, judge_of, judge_part
from ragspan.judges.judge_protocols import Judge, Verifier
from ragspan.judges.jury import Jury
from ragspan.judges.presets import PRESETS
from ragspan.metrics.faithfulness import Faithfulness, FaithfulnessWithHHEM
from ragspan.metrics.metric import Metric
from ragspan.metrics.polled import AnswerRelevance, Completeness, ContextAdherence
from ragspan.metrics.single_contexts import ChunkAttribution, ChunkUtilization, ContextRelevance, ContextUtilization

METRICS: Final = "ragspan_metric"
"""The group of entry points."""


class Guide(NamedTuple):
    """What a reader of scores has to know about a metric, in the words of `docs/metrics.md`."""

    question: str
    when_low: str | None = None


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """A metric by its name."""

    make: Callable[..., Metric]
    guide: Guide | None


BUILT_IN: Final[Mapping[str, CatalogueEntry]] = MappingProxyType(
    {
        "context_adherence": CatalogueEntry(
            ContextAdherence,
            Guide(
                "Does the response as a whole keep to its contexts?",
                "read the explanation. Then look at the contexts: a response cannot be grounded if they do not contain"
                " the answer (context_relevance). If they do, instruct the model to keep to them, or to say when they do"
                " not contain the answer.",
            ),
        ),
        "completeness": CatalogueEntry(
            Completeness,
            Guide(
                "How much of the relevant information does the response include?",
                "the prompt may ask for brevity, the response may stop early (gen_ai.response.finish_reasons), or the"
                " contexts may contain far more than the question needs.",
            ),
        ),
        "context_utilization": CatalogueEntry(
            ContextUtilization,
            Guide(
                "Were the useful contexts at the top of the ranking?",
                "the retriever ranks badly. Try a reranker, or fewer contexts.",
            ),
        ),
        "faithfulness": CatalogueEntry(
            Faithfulness,
            Guide(
                "Which of its claims do the contexts support?",
                "the explanation lists what to look for: inventions, knowledge from the model's training, or facts from"
                " documents that did not reach the prompt. With the default threshold of 0.8, a response of four claims or"
                " fewer must have all of them supported.",
            ),
        ),
        "faithfulness_hhem": CatalogueEntry(
            FaithfulnessWithHHEM,
            Guide(
                "The same, by a classifier",
                "look at the claims that the explanation lists, and at the probabilities in evidence: near 0.5 the"
                " classifier is unsure. If faithfulness differs, read the claims on which they do, and compare with"
                ' premise="best_context".',
            ),
        ),
        "answer_relevance": CatalogueEntry(
            AnswerRelevance,
            Guide(
                "Does the response address the question?",
                "see whether the response is a refusal (ragspan.answer.refusal), and whether the contexts contain an"
                " answer (context_relevance). If not, the question may have been rewritten badly, or the prompt asks for"
                " too much around the answer.",
            ),
        ),
        "context_relevance": CatalogueEntry(
            ContextRelevance,
            Guide(
                "Did the retriever find what answers the question?",
                "with a low best, no model could have answered: check the documents, the index and the query. With a high"
                " one, fetch fewer documents, or rerank them.",
            ),
        ),
        "chunk_attribution": CatalogueEntry(
            ChunkAttribution,
            Guide(
                "Which contexts contributed to the response?",
                "fetch fewer documents. When it is 0, the response came from elsewhere: see context adherence.",
            ),
        ),
        "chunk_utilization": CatalogueEntry(
            ChunkUtilization,
            Guide(
                "How much of the contexts' text did the response use?",
                "with high chunk_attribution, the contexts are longer than necessary: make smaller chunks. With low"
                " attribution, fetch fewer.",
            ),
        ),
    }
)
"""The metrics of this package, in the order of the documentation."""


def metric_names() -> list[str]:
    """The names of all metrics, those of other packages last."""
    return list(dict.fromkeys([*BUILT_IN, *part_names(METRICS)]))


def guide_of(name: str) -> Guide | None:
    """What a report says about a metric: of another package's metric the first line of its docstring; None if there is none."""
    if name not in BUILT_IN and name not in part_names(METRICS):
        return None  # given as an object
    return entry_of(name).guide


def entry_of(name: str) -> CatalogueEntry:
    """The metric of this name.

    Raises:
        ConfigurationError: there is none, or its package cannot be imported.
    """
    if name in BUILT_IN:
        return BUILT_IN[name]
    require_known(name, metric_names())
    part = load_part(METRICS, name, f"there is no metric {name!r} here")
    about = inspect.cleandoc(part.__doc__ or "").partition("\n")[0]
    return CatalogueEntry(part, Guide(about) if about and not about.startswith(f"{part.__name__}(") else None)


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
    entries = {name: entry_of(name) for name in wanted if isinstance(name, str)}
    asked = _chosen_judge(settings, judge) if entries else None
    arguments = {
        "judge": asked,
        "causes": settings.causes is not False,
        "llm_causes": settings.causes == "llm",
        **_of_hhem(settings),
    }
    made = {name: _made(entry, arguments) for name, entry in entries.items()}
    # A name gives nothing the second time; two metrics of one name are an error that the engine raises.
    metrics = [made.pop(metric, None) if isinstance(metric, str) else metric for metric in wanted]
    return [metric for metric in metrics if metric is not None]


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
            a key is set for a jury of several providers, or a price for a jury.
    """
    names = [name.partition(":")[0].strip().lower() for name in settings.judge.split(",") if name.strip()]
    if names == [EMBEDDED]:
        return judge_of(settings.judge, ())  # it asks nobody, so that these settings are another judge's
    given: dict[str, Any] = {
        "base_url": settings.judge_base_url,
        "api_key": settings.judge_api_key,
        "price": settings.judge_price,
    }
    given = {name: value for name, value in given.items() if value is not None}
    shared = [name for name in given if len(names if name == "price" else set(names)) > 1]
    if shared:
        variables = " and ".join(f"RAGSPAN_JUDGE_{name.upper()}" for name in shared)
        raise ConfigurationError(
            f"{variables} would count for all of the jury {settings.judge!r}: unset it, and give each judge its own in "
            'RAGSPAN_JUDGE_OPTIONS, such as [{"base_url": "…"}, {"price": [0.15, 0.6]}]'
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


def _made(entry: CatalogueEntry, arguments: Mapping[str, Any]) -> Metric:
    """The metric, with those of these arguments that it has."""
    parameters = inspect.signature(entry.make).parameters
    return entry.make(**{name: value for name, value in arguments.items() if name in parameters})


def _of_hhem(settings: Settings) -> dict[str, Any]:
    return {"device": settings.hhem_device, "batch_size": settings.hhem_batch_size, "model": settings.hhem_model}
