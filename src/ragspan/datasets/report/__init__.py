"""The report of an evaluation: one HTML file that people look at, and plots as pictures."""

from __future__ import annotations

from ragspan.datasets.report.comparison import Comparison, MetricComparison, Regression, compare
from ragspan.datasets.report.page import write_plots, write_report
from ragspan.datasets.report.signs import Sign, signs_of

__all__ = [
    "Comparison",
    "MetricComparison",
    "Regression",
    "Sign",
    "compare",
    "signs_of",
    "write_plots",
    "write_report",
]
