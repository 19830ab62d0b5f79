"""The files for containers: what they start runs, answers its probes, and ends in the time that it is given."""

from __future__ import annotations

import http.client
import itertools
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from servers.broker import Broker
from waiting import until

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "examples" / "containers"
COMPOSE = yaml.safe_load(re.sub(r"\$\{\w+:[?-](.*?)\}", r"\1", (FOLDER / "compose.yaml").read_text(encoding="utf-8")))
DEPLOYMENTS = {
    one["metadata"]["name"].removeprefix("ragspan-"): one["spec"]["template"]["spec"]
    for one in yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text(encoding="utf-8"))
    if one["kind"] == "Deployment"
}
KINDS = ["worker", "receiver"]
MORE_THAN_IT_NEEDS = {"worker": 20, "receiver": 10}


def started_by_kubernetes(kind):
    (container,) = DEPLOYMENTS[kind]["containers"]
    environment = {one["name"]: one.get("value", "a-key") for one in container["env"]}
    return container["args"], environment, DEPLOYMENTS[kind]["terminationGracePeriodSeconds"]


def started_by_compose(kind):
    service = COMPOSE["services"][kind]
    environment = {name: text or "" for name, text in service["environment"].items()}
    return service["command"], environment, int(service["stop_grace_period"].removesuffix("s"))


WAYS = [started_by_compose, started_by_kubernetes]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
def test_a_container_gets_more_seconds_than_its_end_may_take(way, kind):
    arguments, environment, grace = way(kind)
    told = dict(itertools.pairwise(arguments))
    needed = told["--drain-timeout"] if kind == "worker" else environment["RAGSPAN_EXIT_TIMEOUT"]

    assert grace == float(needed) + MORE_THAN_IT_NEEDS[kind]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
def test_what_a_container_starts_answers_the_probes_and_ends_in_time(way, kind, tmp_path, otlp_listener):
    arguments, environment, grace = way(kind)
    broker = Broker(tmp_path / "broker") if kind == "worker" else None
    if broker:
        broker.start()
    with closing(socket.socket()) as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
    here = [re.sub(r"0\.0\.0\.0:\d+", f"127.0.0.1:{port}", one) for one in arguments]
    here = [broker.url if broker and one.startswith("nats://") else one for one in here]
    settings = {**environment, "OTEL_EXPORTER_OTLP_ENDPOINT": otlp_listener.url, "NO_PROXY": "*"}
    others = {name: text for name, text in os.environ.items() if not name.startswith(("RAGSPAN_", "OTEL_"))}
    process = subprocess.Popen(
        [sys.executable, "-m", "ragspan.cli", *here],
        env={**others, **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        until(lambda: status(port, "/readyz") == http.client.OK or process.poll() is not None)
        assert process.poll() is None, process.communicate()[0]
        assert [status(port, path) for path in probed(kind)] == [http.client.OK, http.client.OK]
        process.send_signal(signal.SIGTERM)
        shown, _ = process.communicate(timeout=grace)
        assert process.returncode == 0, shown
    finally:
        process.kill()
        process.communicate()
        if broker:
            broker.kill()


def probed(kind):
    (container,) = DEPLOYMENTS[kind]["containers"]
    named = {one["name"] for one in container["ports"]}
    probes = [container[name]["httpGet"] for name in ("livenessProbe", "readinessProbe")]
    assert {one["port"] for one in probes} <= named
    return [one["path"] for one in probes]


def status(port, path):
    """What a probe gets; None if nobody listens."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=5)) as connection:
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        except OSError:
            return None


def test_the_image_is_built_from_the_distributions_and_runs_as_nobody():
    text = (FOLDER / "Dockerfile").read_text(encoding="utf-8")
    copied = (FOLDER / "Dockerfile.dockerignore").read_text(encoding="utf-8").split()
    installed = re.findall(r"/source/?([\w/.]*)", text.partition("pip install")[2].partition("\n\n")[0])

    assert all((ROOT / name).exists() for name in installed)
    assert [one for one in copied if one.startswith("!") and not (ROOT / one[1:]).exists()] == []
    assert re.findall(r"^USER (\d+)", text, re.MULTILINE) == ["65534"]
    assert 'ENTRYPOINT ["ragspan"]' in text
