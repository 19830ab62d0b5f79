"""A fleet for each test, ended with it."""

from __future__ import annotations

import pytest
from fleet_parts import Fleet
from servers.cluster import Cluster


@pytest.fixture
def make_fleet(tmp_path):
    """Makes fleets for brokers."""
    made = []

    def make(broker, **options):
        folder = tmp_path / f"fleet-{len(made)}"
        folder.mkdir()
        made.append(Fleet(broker, folder, **options))
        return made[-1]

    yield make
    for fleet in made:
        fleet.close()


@pytest.fixture
def broker(own_broker):
    return own_broker


@pytest.fixture
def fleet(make_fleet, broker):
    """A fleet whose broker runs, without workers."""
    return make_fleet(broker)


@pytest.fixture
def cluster(tmp_path):
    """Three brokers that run, as one."""
    with Cluster(tmp_path) as made:
        yield made
