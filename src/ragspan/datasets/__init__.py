"""The same metrics over tables: files, data frames, and anything that has rows.

from ragspan.datasets import evaluate

evaluation = evaluate("answers.csv", ["faithfulness"])
evaluation.summary["faithfulness"].mean
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ragspan.datasets.evaluated import Evaluation
    from ragspan.datasets.evaluation import aevaluate, evaluate
    from ragspan.datasets.result_file import ResultFile
    from ragspan.datasets.results import BadRow, EvaluatedRow, ResultRow
    from ragspan.datasets.summaries import MetricSummary

__all__ = [
    "BadRow",
    "EvaluatedRow",
    "Evaluation",
    "MetricSummary",
    "ResultFile",
    "ResultRow",
    "aevaluate",
    "evaluate",
]

# The command line imports the options of its commands from this package; only a command that runs needs the engine.
_LAZY = {
    "Evaluation": "evaluated",
    "MetricSummary": "summaries",
    "ResultFile": "result_file",
    "aevaluate": "evaluation",
    "evaluate": "evaluation",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'ragspan.datasets' has no attribute {name!r}")
    module = importlib.import_module(f"ragspan.datasets.{_LAZY.get(name, 'results')}")
    value = globals()[name] = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
