"""Real forks: the child shares nothing with its parent that either of them could break."""

from __future__ import annotations

import os
import threading

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def test_the_parents_worker_still_hears_after_the_child_has_collected_everything(run_script):
    """Closing the inherited loop in the child would take the parent's wake-up pipe off the selector they share.

    A process of its own: a child of this one would collect what other tests have left, and gRPC waits for its threads then.
    """
    done = run_script(
        """
        import gc, os, warnings
        warnings.filterwarnings("ignore", category=DeprecationWarning, message=".*fork.*")
        from ragspan import Score
        from ragspan.engine import ScoringEngine
        from ragspan.records import RagRecord

        class Constant:
            name = "constant"
            async def score(self, record):
                return Score(value=1.0)

        engine = ScoringEngine(metrics=[Constant()])

        def score():
            engine.submit(RagRecord(question="q", contexts=["c"], response="r"))
            print(engine.flush(30), flush=True)

        score()
        if not os.fork():
            score()
            engine.shutdown(30)
            gc.collect()
            os._exit(0)
        os.wait()
        score()
        """
    )

    assert done.stdout.splitlines() == ["True", "True", "True"]


@pytest.fixture
def held():
    """Holds a lock in another thread until it is let go: at the end of the test, or by what this returns."""
    done, holders = threading.Event(), []

    def hold(lock):
        is_held = threading.Event()

        def wait() -> None:
            with lock:
                is_held.set()
                done.wait(60)

        holders.append(threading.Thread(target=wait))
        holders[-1].start()
        assert is_held.wait(60)
        return done.set

    yield hold
    done.set()
    for holder in holders:
        holder.join()


def test_a_lock_that_another_thread_holds_at_the_fork_does_not_stop_the_child(fakes, make_engine, in_child, held):
    engine = make_engine(fakes.ConstantMetric())
    held(engine._queue._lock)

    def submit() -> object:
        engine.submit(fakes.a_record())
        return engine.flush(fakes.PATIENCE)

    assert in_child(submit) is True
