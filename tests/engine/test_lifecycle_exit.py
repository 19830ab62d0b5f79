"""Real processes that end with work in the queue."""

from __future__ import annotations

import textwrap

import pytest

pytestmark = pytest.mark.slow

FAR_TOO_LONG = 9.0
"""Seconds. What a busy machine takes is less, and what would wait for the wrong thing would take longer: 20 seconds for as
many engines one after another, 10 for the usual timeout, for ever for what hangs."""

PRELUDE = """
import asyncio, logging, os, sys, threading, time
from ragspan.engine import ScoringEngine
from ragspan.outcomes import Score
from ragspan.records import RagRecord
from ragspan.telemetry.emitter_protocols import ScoreEmitter

logging.getLogger("ragspan").addHandler(logging.NullHandler())  # what others log, or Python warns of, fails the test

def record(question="q"):
    return RagRecord(question=str(question), contexts=["c"], response="r")

class Quick:
    name = "quick"
    async def score(self, record):
        return Score(value=1.0)

class InThread:
    name = "in_thread"
    def score(self, record):
        return Score(value=1.0)

class OnceTheMainThreadEnds:
    '''Cannot be scored before the end of the program has begun.'''
    name = "waiting"
    async def score(self, record):
        await asyncio.get_running_loop().run_in_executor(None, program_ends.wait)
        return Score(value=1.0)

program_ends = threading.Event()

class Hanging:
    name = "hanging"
    async def score(self, record):
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                pass

class BlockingTheLoop:
    name = "blocking_the_loop"
    async def score(self, record):
        threading.Event().wait()

class HangingInExecutor:
    name = "hanging_in_executor"
    async def score(self, record):
        await asyncio.to_thread(threading.Event().wait)

class HangingEmitter(ScoreEmitter):
    def emit(self, scored): pass
    def flush(self, timeout): threading.Event().wait()
    def shutdown(self, timeout): threading.Event().wait()

class Printing(ScoreEmitter):
    score_wait = 10.0
    def emit(self, scored): print("emitted", scored.record.question, *scored.outcomes, flush=True)
    def flush(self, timeout): print("flush", flush=True); return True
    def shutdown(self, timeout): print("shutdown", flush=True)
"""


@pytest.fixture
def run(run_script):
    """Runs a program that begins with the classes above."""
    return lambda program: run_script(PRELUDE + textwrap.dedent(program)).stdout.splitlines()


@pytest.mark.parametrize("ending", ["sys.exit(0)", "pass"])
def test_judges_may_use_threads_while_the_program_ends_though_nobody_holds_the_engine(run, ending: str):
    """The drain comes before Python closes its thread pools, and the loop's own threads are no such pool."""
    lines = run(f"""
        import gc
        def use():
            engine = ScoringEngine(metrics=[OnceTheMainThreadEnds()], emitters=[Printing()])
            for number in range(3):
                engine.submit(record(number))
        use()
        gc.collect()
        threading._register_atexit(program_ends.set)
        {ending}
    """)

    assert sorted(lines[:3]) == [f"emitted {number} waiting" for number in range(3)]
    assert lines[3:] == ["flush", "shutdown"]


SLOW_ENDINGS = {
    **{
        f"{metric} metric": (
            f"engines = [ScoringEngine(metrics=[{metric}()], emitters=[Printing()], exit_timeout=1.0)]",
            0.8,
        )
        for metric in ("HangingInExecutor", "BlockingTheLoop")
    },
    "several engines": (
        "engines = [ScoringEngine(metrics=[Hanging()], exit_timeout=1.0, name=f'engine{n}') for n in range(20)]",
        0.8,
    ),
    "emitter": ("engines = [ScoringEngine(metrics=[Quick()], emitters=[HangingEmitter()], exit_timeout=1.0)]", 0.0),
}


@pytest.mark.parametrize("provider_comes", ["before the first submit", "after it"])
def test_scores_are_exported_though_the_engine_was_made_before_the_provider(run, provider_comes: str):
    submit_first = provider_comes == "after it"
    lines = run(f"""
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter
        from ragspan.telemetry import OTelEmitter

        class Gated:
            name = "gated"
            async def score(self, record):
                await asyncio.get_running_loop().run_in_executor(None, gate.wait)
                return Score(value=1.0)

        gate = threading.Event()
        engine = ScoringEngine(metrics=[Gated()], emitters=[OTelEmitter()])
        if {submit_first}:
            engine.submit(RagRecord(question="q", contexts=["c"], response="r", name="early"))
        provider = TracerProvider()
        formatter = lambda span: f"span {{span.name}} {{span.attributes.get('ragspan.score.gated')}}\\n"
        provider.add_span_processor(BatchSpanProcessor(ConsoleSpanExporter(formatter=formatter)))
        trace.set_tracer_provider(provider)
        engine.submit(RagRecord(question="q", contexts=["c"], response="r", name="late"))
        gate.set()
    """)

    assert "span invoke_workflow late 1.0" in lines


def test_a_submit_at_the_very_end_does_not_raise(run):
    lines = run("""
        class Late:
            def __init__(self, engine):
                self.engine, self.record, self.write = engine, record(), os.write

            def __del__(self):
                self.engine.submit(self.record)
                self.write(1, str(self.engine.stats().dropped).encode())

        engine = ScoringEngine(metrics=[Quick()])
        engine.submit(record())
        late = Late(engine)
    """)

    assert lines == ["{'shutdown': 1}"]


@pytest.mark.parametrize("registered", ["before", "after"])
def test_an_answer_after_the_end_has_begun_is_named_in_the_log(run, registered):
    registering = "atexit.register(lambda: [engine.submit(record(number)) for number in range(3)])"
    lines = run(f"""
        import atexit
        logging.getLogger("ragspan").addHandler(logging.StreamHandler(sys.stdout))
        engine = ScoringEngine(metrics=[Quick()], emitters=[Printing()])
        {registering if registered == "before" else ""}
        engine.submit(record())
        {registering if registered == "after" else ""}
    """)

    told = "answers that are not scored, because the process ended: 3 (RAGSPAN_EXIT_TIMEOUT is 10 s)"
    assert (lines.count(told), lines.count("emitted q quick")) == ((1, 1) if registered == "before" else (0, 1))


INTERRUPTED = {
    "a submit": ("_count", "engine.submit(record(2)); threading.Event().wait()"),
    "a shutdown": ("wait_until_out", "engine.shutdown(20); threading.Event().wait()"),
    "the usual end": ("_tell_waiters", "sys.exit(0)"),
}
"""A step of the queue, and what takes it in the main thread."""


@pytest.mark.parametrize("interrupted", INTERRUPTED)
def test_a_sigterm_waits_for_scores_also_where_it_interrupts_a_step_that_it_would_wait_for(run, interrupted):
    """As a pool's does that is terminated while its workers end."""
    step, then = INTERRUPTED[interrupted]
    lines = run(f"""
        import signal, warnings
        from ragspan.engine.record_queue import RecordQueue
        warnings.filterwarnings("ignore", category=DeprecationWarning, message=".*fork.*")

        whole = RecordQueue.{step}

        def interrupted(*arguments, **options):
            if threading.current_thread() is threading.main_thread():
                RecordQueue.{step} = whole
                signal.raise_signal(signal.SIGTERM)
            return whole(*arguments, **options)

        class Slow:
            name = "slow"
            async def score(self, record):
                await asyncio.sleep(0.2)
                return Score(value=1.0)

        engine = ScoringEngine(metrics=[Slow()], emitters=[Printing()])
        if not os.fork():
            engine.submit(record(1))
            RecordQueue.{step} = interrupted
            {then}
        print("ended by", -os.waitstatus_to_exitcode(os.wait()[1]))
    """)

    answers = [1, 2] if interrupted == "a submit" else [1]
    assert [line for line in lines if line.startswith("emitted")] == [f"emitted {answer} slow" for answer in answers]
    assert lines[-1] == "ended by 15"


def test_a_worker_of_a_pool_ends_by_sigterm_though_its_main_thread_does_not_hear_of_it(run):
    """Python runs a handler when the main thread's wait ends. Here another thread gets the signal, so that wait goes on."""
    lines = run("""
        import multiprocessing, signal, warnings
        warnings.filterwarnings("ignore", category=DeprecationWarning, message=".*fork.*")

        def interrupt_this_thread():
            time.sleep(0.3)
            signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

        def work(number):
            engine.submit(record(number))
            threading.Thread(target=interrupt_this_thread, daemon=True).start()
            lock.acquire()

        engine = ScoringEngine(metrics=[Quick()], emitters=[Printing()])
        fork = multiprocessing.get_context("fork")
        lock = fork.Lock()
        lock.acquire()
        with fork.Pool(1) as pool:
            [worker] = pool._pool
            pool.map_async(work, [1])
            worker.join(30)
            print("ended by", -worker.exitcode)
    """)

    assert {"emitted 1 quick", "ended by 15"} <= set(lines)


def test_a_child_ends_by_sigterm_as_it_would_without_ragspan_until_it_has_work(run):
    lines = run("""
        import signal, warnings
        warnings.filterwarnings("ignore", category=DeprecationWarning, message=".*fork.*")

        engine = ScoringEngine(metrics=[Quick()])
        engine.submit(record())
        print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, flush=True)
        if not os.fork():
            print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
            engine.submit(record())
            print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
            sys.exit()
        os.wait()
    """)

    assert lines == ["False", "True", "False"]
