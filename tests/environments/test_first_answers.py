"""The first answer is scored in threads. What this needs is imported, and read from the system, where the engine is made.

A fork finds a thread in the middle of anything: in the child a module stays half imported, and a lock is never released. And what
one thread has half imported is in `sys.modules` for every other.
"""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow

WATCH = """
in_threads = []

def note(event, name):
    if threading.current_thread() is not threading.main_thread() and name != sys.executable:  # which is the helper
        in_threads.append(f"{event} {name}")

def watched(load):
    return lambda *args, **kwargs: (note("loads", "certificates"), load(*args, **kwargs))[1]

import ssl
ssl.SSLContext.load_verify_locations = watched(ssl.SSLContext.load_verify_locations)
sys.addaudithook(lambda event, args: event in {"import", "subprocess.Popen"} and note(event, args[0]))
"""
OPENAI = 'ContextAdherence(OpenAIJudge("test-model", max_retries=1), polls=1)'
OVERLAP = "ContextAdherence(OverlapJudge())"


@pytest.mark.parametrize(
    ("judge_name", "options"),
    [
        ("openai", f"metrics=[{OPENAI}]"),
        ("overlap", f"metrics=[{OVERLAP}]"),
        ("overlap", f'metrics=[{OVERLAP}], judging="thread"'),
    ],
    ids=["openai", "helper", "thread"],
)
def test_no_thread_imports_anything_or_starts_a_program(start, judge, judge_name, options):
    judge.release()
    program = start(
        f"""
import ragspan
engine = ScoringEngine({options}, emitters=[OTelEmitter()])
{WATCH}
answer("answer")
print(engine.flush(30), engine.stats().finished, engine.stats().errors, in_threads)
""",
        JUDGE=judge_name,
    )

    assert program.wait() == 0
    assert program.output[-1] == "True 1 {} []"
