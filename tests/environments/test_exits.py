"""A process that ends or forks in mid-work, with answers at a judge and spans for an exporter: each answer is judged and exported once."""

from __future__ import annotations

import re
import signal

import pytest
from waiting import until

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("ending", "status"),
    [("", 0), ("raise LookupError", 1), ("threading.Thread(target=lambda: None).start()", 0)],
)
def test_a_program_that_ends_in_mid_work_finishes_it(start, judge, scores, ending, status):
    program = start(f"""
        for number in range(3):
            answer(f"answer {{number}}")
        print("the end")
        {ending}
    """)
    program.line_with("the end")
    judge.wait_until_asked(3)
    judge.release()

    assert program.wait() == status
    assert scores() == {"answer 0": 1.0, "answer 1": 1.0, "answer 2": 1.0}
    assert judge.times_asked == 3


@pytest.mark.parametrize(
    ("environment", "released", "received"),
    [
        ({}, True, [{"answer": 1.0}]),
        ({"EXIT_TIMEOUT": "0.2"}, False, [{}, {"answer": None}]),
    ],
    ids=["waits", "not for ever"],
)
def test_a_sigterm_that_nobody_handles_waits_for_scores_and_ends_the_program_all_the_same(
    start, judge, scores, environment, released, received
):
    program = start('answer("answer"); signal.pause()', **environment)
    judge.wait_until_asked(1)
    program.send(signal.SIGTERM)
    if released:
        judge.release()

    assert program.wait() == -signal.SIGTERM
    assert scores() in received


ANSWERING = """
lines = os.open("answered", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

def go_on(client):
    for number in range(100_000):
        answer(f"{client}-{number}")
        os.write(lines, f"{client}-{number}\\n".encode())
        time.sleep(0.01)

threads = [threading.Thread(target=go_on, args=[client], daemon=True) for client in range(4)]
for thread in threads:
    thread.start()
"""


@pytest.mark.parametrize(
    "ending", ["threads[0].join()", "time.sleep(1000)", "wait_for_test()"], ids=["joins", "sleeps", "usual end"]
)
def test_what_threads_answer_until_the_end_is_scored_or_counted_in_one_line_of_the_log(start, scores, tmp_path, ending):
    """They are daemons, and go on until the process is gone. What was answered before the end began is scored."""
    program = start(ANSWERING + ending, JUDGE="overlap")
    answered = tmp_path / "answered"
    until(lambda: answered.exists() and len(answered.read_text().splitlines()) > 100)
    before = set(answered.read_text().split())
    if ending == "wait_for_test()":
        program.let_go_on()
    else:
        program.send(signal.SIGTERM)

    assert program.wait() == (0 if ending == "wait_for_test()" else -signal.SIGTERM)
    told = [line for line in program.output if "because the process ended" in line]
    dropped = int(re.search(r"ended: (\d+)", told[0])[1]) if told else 0
    scored = {name for name, value in scores().items() if value is not None}
    assert len(told) <= 1
    assert before <= scored
    # One that was being written down when the process ended may be scored or counted, too.
    assert 0 <= len(scored) + dropped - len(answered.read_text().split()) <= len("1234")


@pytest.mark.parametrize(
    ("handler", "ended", "kept"),
    [("signal.signal(signal.SIGHUP, lambda *_: sys.exit(0))", 0, True), ("", -signal.SIGHUP, False)],
    ids=["handled", "not handled"],
)
def test_sighup_loses_what_waits_unless_it_is_handled(start, judge, scores, handler, ended, kept):
    program = start(f"""
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        {handler}
        answer("answer")
        signal.pause()
    """)
    judge.wait_until_asked(1)
    program.send(signal.SIGHUP)
    if kept:
        judge.release()

    assert program.wait() == ended
    assert scores() == ({"answer": 1.0} if kept else {})


HANDLER = """
import os, signal, time
signals = []
def handle(number, frame):
    signals.append(number)
    print("signal", len(signals), flush=True)
signal.signal(signal.SIGTERM, handle)
"""


@pytest.mark.parametrize("begin", ["import program" + HANDLER, HANDLER + "import program"], ids=["after", "before"])
def test_a_handler_of_the_application_decides_what_sigterm_does(start, judge, begin):
    """Set before the engine is made, or after: both keep working, also at a second signal."""
    wait = """
print("ready", flush=True)
while len(signals) < 2:
    time.sleep(0.05)
os._exit(3)
"""
    program = start('answer("answer")', "-c", f"{begin}{wait}")
    program.line_with("ready")
    program.send(signal.SIGTERM)
    program.line_with("signal 1")
    program.send(signal.SIGTERM)

    assert program.wait() == 3


def test_a_thread_that_outlives_the_main_one_has_its_answers_scored(start, judge, scores):
    program = start("""
        def work():
            wait_for_test()
            answer("late")
        threading.Thread(target=work).start()
        answer("early")
        print("the end")
    """)
    program.line_with("the end")
    judge.release()
    judge.wait_until_asked(1)
    program.let_go_on()

    assert program.wait() == 0
    assert scores() == {"early": 1.0, "late": 1.0}


def test_a_program_that_replaces_itself_keeps_what_it_has_flushed(start, judge, scores):
    """As reloaders do. `os.execv` runs nothing at the end, as `os._exit` does."""
    judge.release()
    program = start("""
        which = os.environ.get("WHICH", "first")
        answer(which)
        if which == "first":
            print("flushed", engine.flush(30))
            os.environ["WHICH"] = "second"
            os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    """)

    assert program.wait() == 0
    assert program.output == ["flushed True"]
    assert scores() == {"first": 1.0, "second": 1.0}


def test_a_daemon_that_leaves_its_parents_and_its_terminal_finishes_its_work(start, judge, scores):
    """The double fork of daemons, with answers before, and all the descriptors of a terminal replaced."""
    judge.release()
    program = start("""
        answer("before")
        print("flushed", engine.flush(30))
        first = os.fork()
        if not first:
            os.setsid()
            if os.fork():
                os._exit(0)
            os.chdir("/")
            for descriptor in (0, 1, 2):
                os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)
            for number in range(3):
                answer(f"daemon {number}")
            sys.exit(0)
        os.waitpid(first, 0)
    """)

    assert program.wait() == 0
    until(lambda: len(scores()) == 4)
    assert scores() == dict.fromkeys(["before", "daemon 0", "daemon 1", "daemon 2"], 1.0)


# Forks: by the process that gave it


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
    judge.wait_until_asked(1)  # one of the workers may do all the work
    judge.release()

    assert program.wait() == 0
    assert scores() == dict.fromkeys(["parent", *(f"child {number}" for number in range(4))], 1.0)
