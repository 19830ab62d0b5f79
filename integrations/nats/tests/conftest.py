"""Brokers for the tests, ended with them."""

from __future__ import annotations

import os

import hypothesis
import pytest
from commands import run_worker  # noqa: F401 - a fixture
from servers.broker import Broker
from servers.otlp import FleetBackend
from worker_process import start_worker

from ragspan_nats import NatsSink

hypothesis.settings.register_profile("ragspan", deadline=None, derandomize=True)  # a slow machine is no wrong answer
hypothesis.settings.load_profile("ragspan")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    for name in [name for name in os.environ if name.startswith(("NATS_", "OTEL_", "RAGSPAN_"))]:
        monkeypatch.delenv(name)


@pytest.fixture
def make_broker(tmp_path):
    """Makes brokers, which a test starts itself, and ends them."""
    made = []

    def make(**options):
        made.append(Broker(tmp_path / f"broker-{len(made)}", **options))
        return made[-1]

    yield make
    for broker in made:
        broker.close()


@pytest.fixture(scope="session")
def shared_broker(tmp_path_factory):
    with Broker(tmp_path_factory.mktemp("broker")) as made:
        yield made


@pytest.fixture
def broker(shared_broker):
    """A broker that runs, asks nobody who he is, and has no streams yet; it is not to be stopped."""
    yield shared_broker
    shared_broker.drop_all_streams()


@pytest.fixture
def own_broker(make_broker):
    """The same, for tests that stop it, or look at its connections."""
    made = make_broker()
    made.start()
    return made


@pytest.fixture
def make_sink():
    """Makes sinks that are shut down at the end."""
    made = []

    def make(broker, **options):
        made.append(NatsSink(broker.url if isinstance(broker, Broker) else broker, **options))
        return made[-1]

    yield make
    for sink in made:
        sink.shutdown(1)


@pytest.fixture
def make_worker(broker, tmp_path):
    """Makes `ragspan worker` processes, and ends them."""
    made = []

    def make(*arguments, **environment):
        made.append(start_worker(broker, tmp_path / f"worker-{len(made)}.log", *arguments, **environment))
        return made[-1]

    yield make
    for worker in made:
        worker.kill()


@pytest.fixture
def backend():
    """An OTLP endpoint."""
    with FleetBackend() as made:
        yield made
