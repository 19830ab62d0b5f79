"""A real Prometheus scrapes an application: every query of the dashboard and every rule finds the series it asks for.

Nothing waits for a time to pass. The application notices each scrape, and with the third one the first two are stored,
for a target's scrapes follow one another.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import threading
import urllib.parse
import urllib.request
from contextlib import closing
from pathlib import Path
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest
import yaml
from prometheus_client import make_wsgi_app

PATIENCE = 60  # seconds, until a test gives up
RULES = Path(__file__).parents[2] / "docs" / "grafana" / "alerts.yaml"
CASES = sorted(Path(__file__).parent.glob("alerts_*test.yaml"))

pytestmark = pytest.mark.slow


class Scraped:
    """Serves the metrics of an application, and notices who asks for them."""

    def __init__(self, registry):
        self._page = make_wsgi_app(registry)
        self._count = 0
        self._scraped = threading.Condition()
        self._server = make_server("127.0.0.1", 0, self._serve, handler_class=Quiet)
        self.address = f"127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def _serve(self, environ, start_response):
        with self._scraped:
            self._count += 1
            self._scraped.notify_all()
        return self._page(environ, start_response)

    def wait_for_scrapes(self, number):
        with self._scraped:
            wanted = self._count + number
            assert self._scraped.wait_for(lambda: self._count >= wanted, PATIENCE), "Prometheus does not scrape"

    def close(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class Quiet(WSGIRequestHandler):
    def log_message(self, *args):
        pass


class Prometheus:
    """A server of the test's own, with the alert rules."""

    def __init__(self, program, folder, page):
        config = {
            "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "1s"},
            "rule_files": [str(_often(folder))],
            "scrape_configs": [{"job_name": "shop", "static_configs": [{"targets": [page.address]}]}],
        }
        self._page = page
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
        with closing(socket.create_server(("127.0.0.1", 0))) as free:
            self.url = f"http://127.0.0.1:{free.getsockname()[1]}"
        self._log = (folder / "log").open("wb")
        self._process = subprocess.Popen(
            [
                program,
                f"--config.file={folder / 'prometheus.yaml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={self.url.removeprefix('http://')}",
            ],
            stdout=self._log,
            stderr=self._log,
        )

    def ask(self, path, **parameters):
        query = urllib.parse.urlencode(parameters, doseq=True)
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{query}", timeout=PATIENCE) as reply:
            return json.load(reply)["data"]

    def series(self, expression):
        return self.ask("query", query=expression)["result"]

    def wait_for(self, expression):
        """Until there are such series: a rule is evaluated later, and a scrape that times out on a busy machine ends all series until the next."""
        for _ in range(PATIENCE * 2):
            if self.series(expression):
                return
            self._page.wait_for_scrapes(1)
        pytest.fail(f"nothing for {expression}")

    def close(self):
        self._process.terminate()
        self._process.wait(PATIENCE)
        self._log.close()


def _often(folder):
    """The rules, evaluated every second."""
    loaded = yaml.safe_load(RULES.read_text(encoding="utf-8"))
    groups = [group | {"interval": "1s"} for group in loaded["groups"]]
    (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": groups}), encoding="utf-8")
    return folder / "rules.yaml"


@pytest.fixture(scope="module")
def scraping(prometheus, shop, tmp_path_factory):
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("NO_PROXY", "*")
        shop.trade()
        page = Scraped(shop.registry)
        server = Prometheus(prometheus, tmp_path_factory.mktemp("prometheus"), page)
        try:
            page.wait_for_scrapes(2)
            shop.trade()  # a rate is of what changed in between
            page.wait_for_scrapes(3)
            server.wait_for("ragspan:rate:upper")
            yield server
        finally:
            server.close()
            page.close()


def queries(dashboard):
    """What the panels ask, as Grafana would write it for one minute of all applications and metrics."""
    panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
    for expression in (target["expr"] for panel in panels for target in panel["targets"]):
        filled = expression.replace("$__rate_interval", "1m").replace("$__range", "1m")
        yield re.sub(r"\$(job|metric|judge)\b", ".*", filled).replace("$dimension", "release")


def rules():
    return [rule for group in yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"] for rule in group["rules"]]


def selectors(expression):
    """The series that an expression asks for, whatever it does with them; not those that other rules record."""
    without_labels = re.sub(r"\b(by|on|without) \([^)]*\)|\bragspan:[\w:]+(\{[^}]*\})?", "", expression)
    return [name + labels for name, labels in re.findall(r"\b(ragspan_\w+)(\{[^}]*\})?", without_labels)]


def test_every_query_of_the_dashboard_and_every_rule_finds_its_series(scraping, dashboard):
    asked = {selector for rule in rules() for selector in selectors(rule["expr"])}
    assert len(asked) > 10

    for expression in [*queries(dashboard), *asked]:
        scraping.wait_for(expression)


def test_the_choices_of_the_dashboard_are_not_empty(scraping, dashboard):
    for variable in dashboard["templating"]["list"][1:]:
        if variable["type"] == "custom":
            continue
        selector, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["definition"]).groups()
        values = scraping.ask(f"label/{label}/values", **{"match[]": selector.replace("$job", ".*")})
        assert values, variable["name"]


def test_the_cases_of_the_rules_are_made_of_series_that_there_are(scraping):
    """But for the names of applications, engines, metrics, judges and backends, which are anybody's."""
    cases = [case for file in CASES for case in yaml.safe_load(file.read_text(encoding="utf-8"))["tests"]]
    made_up = {series["series"] for case in cases for series in case["input_series"]}

    assert made_up
    for series in made_up:
        scraping.wait_for(_with_any_names(series))


def _with_any_names(series):
    """A query for series that have these labels, with these values where ragspan gives them."""
    name, labels = re.fullmatch(r"(\w+)\{(.*)\}", series).groups()
    pairs = re.findall(r'(\w+)="([^"]*)"', labels)
    free = {"job", "instance", "gen_ai_evaluation_name", "ragspan_engine", "ragspan_judge", "ragspan_destination"}
    matchers = [f'{label}!=""' if label in free else f'{label}="{value}"' for label, value in pairs]
    if "ragspan_result" in dict(pairs) and "ragspan_reason" not in dict(pairs):
        matchers.append('ragspan_reason=""')
    return f"{name}{{{', '.join(matchers)}}}"
