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


def test_children_of_forks_at_any_moment_of_the_first_answer_score_their_own(start, judge, scores):
    """Their work begins when the parent has done its own, which they would else slow down."""
    judge.release()
    program = start("""
        reading, writing = os.pipe()
        answer("parent")
        children = []
        while not engine.stats().done and len(children) < 40:
            child = os.fork()
            if not child:
                os.close(writing)
                os.read(reading, 1)
                answer(f"child {len(children)}")
                os._exit(0 if engine.flush(30) else 1)
            children.append(child)
            time.sleep(0.001)
        os.close(writing)
        print({os.waitpid(child, 0)[1] for child in children}, len(children))
    """)

    assert program.wait() == 0
    statuses, children = program.output[-1].rsplit(maxsplit=1)
    assert statuses == "{0}"
    assert scores() == dict.fromkeys(["parent", *(f"child {number}" for number in range(int(children)))], 1.0)
