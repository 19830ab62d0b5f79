import threading

import pytest

from ragspan_mlflow.lanes import in_lanes


def test_results_stand_in_the_order_of_the_jobs():
    first_may_end = threading.Event()

    def work(job):
        if job == 0:
            assert first_may_end.wait(10)
        else:
            first_may_end.set()
        return job * 10

    assert in_lanes(work, range(5), 2) == [0, 10, 20, 30, 40]


def test_so_many_jobs_are_under_way_at_once():
    together = threading.Barrier(3)

    assert in_lanes(lambda job: together.wait(10) >= 0, range(3), 3) == [True] * 3


def test_one_lane_is_the_callers_own_thread():
    assert in_lanes(lambda job: threading.current_thread(), range(3), 1) == [threading.current_thread()] * 3


def test_no_thread_is_left_behind():
    before = threading.active_count()

    in_lanes(lambda job: job, range(100), 4)

    assert threading.active_count() == before


def test_no_job_is_begun_after_a_failure():
    begun = []

    def work(job):
        begun.append(job)
        if job == 2:
            raise ValueError("job 2")

    with pytest.raises(ValueError, match="job 2"):
        in_lanes(work, range(10), 1)

    assert begun == [0, 1, 2]


def test_where_no_thread_can_be_started_the_caller_does_it_all(monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)

    assert in_lanes(lambda job: job + 1, range(5), 4) == [1, 2, 3, 4, 5]


def test_nothing_to_do_is_done_at_once():
    assert in_lanes(lambda job: job, [], 4) == []
