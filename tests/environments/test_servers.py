"""Servers and Celery's workers that the deploy table does not have: real requests, and SIGTERM while a judge is being asked."""

from __future__ import annotations

import signal

import pytest

pytestmark = pytest.mark.slow

# Celery: what its tasks answered is scored, however the worker runs them and whenever its children end

TASKS = """
import celery

app = celery.Celery(
    "program",
    broker="filesystem://",
    broker_transport_options={"data_folder_in": "broker", "data_folder_out": "broker", "control_folder": "control"},
)

@app.task(name="give")
def give(name):
    answer(name)

@celery.signals.worker_ready.connect
def send(**_):
    for number in range(3):
        give.delay(f"answer {number}")
"""
WORKER = ("-m", "celery", "-A", "program", "worker", "--without-gossip", "--without-mingle", "--without-heartbeat")


@pytest.fixture
def worker(start, tmp_path):
    pytest.importorskip("celery", reason="runs in `make test-environments`")
    (tmp_path / "broker").mkdir()
    (tmp_path / "control").mkdir()
    return lambda *options, **environment: start(TASKS, *WORKER, *options, **environment)


@pytest.mark.parametrize("pool", ["threads", "solo"])
def test_a_celery_worker_that_is_told_to_end_finishes_what_it_has_in_work(worker, judge, scores, pool):
    process = worker(f"--pool={pool}", "--concurrency=2")
    judge.wait_until_asked(3)
    process.send(signal.SIGTERM)
    process.line_with("Warm shutdown")
    judge.release()

    assert process.wait() == 0
    assert scores() == {f"answer {number}": 1.0 for number in range(3)}


def test_a_celery_child_that_has_done_its_number_of_tasks_finishes_what_they_left(worker, judge, scores):
    """It ends by `os._exit`, which runs none of Python's exit code."""
    process = worker("--pool=prefork", "--concurrency=1", "--max-tasks-per-child=1")
    judge.wait_until_asked(1)
    judge.release()
    judge.wait_until_asked(2)
    process.send(signal.SIGTERM)

    assert process.wait() == 0
    assert scores() == {f"answer {number}": 1.0 for number in range(3)}
