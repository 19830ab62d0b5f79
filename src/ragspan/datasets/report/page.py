"""Puts the report's page together: one file that asks for nothing and runs no script but its own."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from ragspan.datasets.report.figures import metric_figure
from ragspan.datasets.report.script_data import content_policy, script_json
from ragspan.datasets.report.view import ReportView
from ragspan.telemetry.values import legible

if TYPE_CHECKING:
    import jinja2

_INSTALL = "a report needs plotly and jinja2: pip install 'ragspan[report]'"


def render(view: ReportView) -> str:
    """The whole page as text that any encoder takes.

    Raises:
        ImportError: plotly or jinja2 is not installed.
    """
    try:
        from markupsafe import Markup
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise ImportError(_INSTALL) from error
    figures = {metric.anchor: metric_figure(metric.summary, metric.scores) for metric in view.metrics if metric.scores}
    # What stands between the tags has to be, byte for byte, what the policy's hashes are of.
    plotly, script = (get_plotlyjs() if figures else ""), _own("report.js")
    return (
        _environment()
        .get_template("report.html")
        .render(
            view=view,
            policy=content_policy([plotly, script]),
            style=Markup(_own("report.css")),  # noqa: S704 - our own files, and JSON that is escaped
            plotly=Markup(plotly),  # noqa: S704
            script=Markup(script),  # noqa: S704
            figures=Markup(script_json(figures)),  # noqa: S704
        )
    )


@cache
def _environment() -> jinja2.Environment:
    try:
        import jinja2
    except ImportError as error:
        raise ImportError(_INSTALL) from error
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_own),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_legible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "share": share,
        "signed": signed,
        "figure": figure,
        "moment": moment,
        "script_json": script_json,
    }
    return environment


def _own(name: str) -> str:
    return (resources.files(__package__) / "templates" / name).read_text(encoding="utf-8")


def _legible(value: Any) -> Any:
    """Every text that the template writes passes here before it is escaped; markup of our own is left alone."""
    return legible(value) if type(value) is str else value


def figure(value: float | None, digits: int = 2) -> str:
    """A score in figures, or a dash."""
    return "\N{EN DASH}" if value is None else f"{value:.{digits}f}"


def signed(value: float) -> str:
    """A difference of scores with its sign, which one that is shown as zero has not."""
    return f"{value:+.3f}".replace("-", "\N{MINUS SIGN}") if round(value, 3) else "0.000"


def share(value: float) -> str:
    """A share in whole per cent, but none is called nothing or all that is not."""
    if 0 < value < _LEAST:
        return "<1%"
    return ">99%" if 1 - _LEAST < value < 1 else f"{value:.0%}"


def moment(when: datetime) -> str:
    """A time as people write it, with its zone."""
    return f"{when.day} {when:%B %Y, %H:%M %Z}".strip()


_LEAST = 0.01
