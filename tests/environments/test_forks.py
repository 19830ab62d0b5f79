"""Forks in mid-work: every answer is judged once and exported once, by the process that gave it."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("child_ends", ["sys.exit(0)", "engine.flush(30); os._exit(0)"])
def test_parent_and_child_each_finish_their_own(start, judge, scores, child_ends):
    program = start(f"""
        answer("parent 0")
        answer("parent 1")
        wait_for_test()
        child = os.fork()
        if not child:
            inherited = engine.stats()
            answer("child")
            print("inherited", inherited.submitted, inherited.queued, inherited.in_flight)
            {child_ends}
        answer("parent 2")
        print("child ended", os.waitpid(child, 0)[1])
    """)
    judge.wait_until_asked(2)
    program.let_go_on()
    judge.wait_until_asked(2)
    judge.release()

    assert program.wait() == 0
    assert sorted(program.output) == ["child ended 0", "inherited 0 0 0"]
    assert scores() == dict.fromkeys(["parent 0", "parent 1", "parent 2", "child"], 1.0)
    assert judge.times_asked == 4


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_children_of_multiprocessing_finish_their_own(start, judge, scores, method):
    program = start(f"""
        import multiprocessing

        if __name__ == "__main__":
            answer("parent")
            wait_for_test()
            context = multiprocessing.get_context("{method}")
            children = [context.Process(target=answer, args=[f"child {{number}}"]) for number in range(2)]
            for child in children:
                child.start()
            for child in children:
                child.join()
            print([child.exitcode for child in children])
    """)
    judge.wait_until_asked(1)
    program.let_go_on()
    judge.wait_until_asked(2)
    judge.release()

    assert program.wait() == 0
    assert program.output == ["[0, 0]"]
    assert scores() == dict.fromkeys(["parent", "child 0", "child 1"], 1.0)
    assert judge.times_asked == 3


POOLS = {
    "ProcessPoolExecutor": """
        with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as pool:
            list(pool.map(work, range(4)))
    """,
    "Pool": """
        pool = multiprocessing.get_context("fork").Pool(2)
        pool.map(work, range(4))
        pool.close()
        pool.join()
    """,
    "Pool whose workers are replaced": """
        pool = multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1)
        pool.map(work, range(4), chunksize=1)
        pool.close()
        pool.join()
    """,
    "Pool that is terminated": """
        with multiprocessing.get_context("fork").Pool(2) as pool:
            pool.map(work, range(4))
    """,
}
POOL_PROGRAM = """
import concurrent.futures, multiprocessing

def work(number):
    answer(f"child {number}")

if __name__ == "__main__":
    answer("parent")
    wait_for_test()
"""


@pytest.mark.parametrize("pool", POOLS)
def test_a_pool_of_processes_finishes_what_its_workers_have_in_work(start, judge, scores, pool):
    """One that is terminated ends its workers by SIGTERM, which waits for scores."""
    program = start(POOL_PROGRAM + POOLS[pool].replace("\n    ", "\n"))
    judge.wait_until_asked(1)
    program.let_go_on()
    judge.wait_until_asked(2)
    judge.release()

    assert program.wait() == 0
    assert scores() == dict.fromkeys(["parent", *(f"child {number}" for number in range(4))], 1.0)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_child_of_multiprocessing_says_what_it_had_to_leave(start, judge, method):
    program = start(
        f"""
        import multiprocessing

        if __name__ == "__main__":
            child = multiprocessing.get_context("{method}").Process(target=answer, args=["child"])
            child.start()
            child.join()
        """,
        EXIT_TIMEOUT="0.5",
    )

    assert program.wait() == 0
    assert [line for line in program.output if "1 records were abandoned" in line]
