"""The dashboard is one that Grafana can read, as far as that shows without Grafana."""

from __future__ import annotations

import re
from pathlib import Path

from ragspan.telemetry import semconv

GRAFANA = Path(__file__).parents[2] / "docs" / "grafana"
BUILT_IN = {"__rate_interval", "__range"}


def drawn(dashboard):
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def targets(dashboard):
    return [target for panel in drawn(dashboard) for target in panel["targets"]]


def test_it_has_what_grafana_needs_to_import_it(dashboard):
    assert dashboard["title"] == dashboard["uid"] == "ragspan"
    assert dashboard["schemaVersion"] >= 36  # data sources are objects from here on
    assert {"from", "to"} == dashboard["time"].keys()
    assert "id" not in dashboard  # a number of one Grafana's database


def test_the_reader_chooses_the_data_source(dashboard):
    (variable,) = [variable for variable in dashboard["templating"]["list"] if variable["type"] == "datasource"]
    chosen = {"type": "prometheus", "uid": "${datasource}"}

    assert (variable["name"], variable["query"]) == ("datasource", "prometheus")
    asked = [*drawn(dashboard), *targets(dashboard)]
    asked += [variable for variable in dashboard["templating"]["list"] if variable["type"] == "query"]
    assert [part["datasource"] for part in asked] == [chosen] * len(asked)


def test_every_variable_in_a_query_is_there(dashboard):
    known = {variable["name"] for variable in dashboard["templating"]["list"]} | BUILT_IN
    used = {name for target in targets(dashboard) for name in re.findall(r"\$(\w+)", target["expr"])}

    assert used <= known
    assert {"job", "metric"} <= used


def test_every_query_heeds_what_the_reader_chose(dashboard):
    assert [target["expr"] for target in targets(dashboard) if 'job=~"$job"' not in target["expr"]] == []


def test_every_query_and_every_rule_asks_for_names_that_ragspan_writes():
    """Prometheus has underscores for dots, and endings for units and kinds."""
    known = {value.replace(".", "_") for value in vars(semconv).values() if isinstance(value, str)}
    asked = {
        re.sub(r"(_seconds)?(_total|_bucket|_count|_sum)?$", "", name)
        for file in (GRAFANA / "ragspan.json", GRAFANA / "alerts.yaml")
        for name in re.findall(r"\bragspan_\w+", file.read_text(encoding="utf-8"))
    }

    assert len(asked) > 15
    assert asked - known <= {"ragspan_dimension_"}
