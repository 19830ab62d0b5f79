"""Puts the report's page together: one file that asks for nothing and runs no script but its own."""

from __future__ import annotations

import base64
import hashlib
from datetime import datetime
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from ragspan.datasets.report.view import MetricView, ReportView
from ragspan.telemetry.values import legible

if TYPE_CHECKING:
    import jinja2

_INSTALL = "a report needs jinja2: pip install 'ragspan[report]'"


def render(view: ReportView) -> str:
    """The whole page as text that any encoder takes.

    Raises:
        ImportError: jinja2 is not installed.
    """
    template = _environment().get_template("report.html")
    from markupsafe import Markup

    script = _own("report.js")  # what stands between the tags has to be, byte for byte, what the policy's hash is of
    return template.render(
        view=view,
        policy=_policy(script),
        style=Markup(_own("report.css")),  # noqa: S704 - our own files
        script=Markup(script),  # noqa: S704
    )


def render_plot(metric: MetricView) -> str:
    """A metric's plot as an SVG file.

    Raises:
        ImportError: jinja2 is not installed.
    """
    return _environment().get_template("plot.svg").render(metric=metric)


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
        "place": place,
    }
    return environment


def _policy(script: str) -> str:
    """A Content-Security-Policy under which a page asks for nothing, and runs this script and no other.

    Styles may stand in the page, for the widths of its bars: where no source of pictures and fonts is allowed, a style
    cannot call anyone.
    """
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; base-uri 'none';"
        " form-action 'none'"
    )


def _own(name: str) -> str:
    return (resources.files(__package__) / "templates" / name).read_text(encoding="utf-8")


def _legible(value: Any) -> Any:
    """Every text that the template writes passes here before it is escaped; markup of our own is left alone."""
    return legible(value) if type(value) is str else value


def figure(value: float | None, digits: int = 2) -> str:
    """A score in figures, or a dash."""
    return "\N{EN DASH}" if value is None else f"{value:.{digits}f}"


def place(score: float) -> float:
    """Where a score stands in a plot, from left to right."""
    return round(10 + 380 * score, 1)


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
