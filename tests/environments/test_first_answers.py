"""The first answer is scored in threads. What this needs is imported, and read from the system, where the engine is made.

A fork finds a thread in the middle of anything: in the child a module stays half imported, and a lock is never released. And what
one thread has half imported is in `sys.modules` for every other.
"""

from __future__ import annotations

import ssl

import pytest
import trustme

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
        (
            "openai",
            f"metrics=[{OPENAI}], budget=ragspan.Budget(tokens_per_minute=1, fallback='overlap'), judging='thread'",
        ),
    ],
    ids=["openai", "helper", "thread", "fallback in a thread"],
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


def test_no_thread_imports_anything_for_a_request_with_tls_a_name_and_an_error(
    start, judge, fake_openai, tmp_path, scores
):
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(tls)
    endpoint = type(fake_openai)(tls=tls)
    endpoint.answer = lambda _: endpoint.fails(429, "busy") if len(endpoint.requests) == 1 else fake_openai.answer(_)
    judge.release()
    program = start(
        f"""
judge = OpenAIJudge("test-model", base_url="{endpoint.base_url.replace("127.0.0.1", "localhost")}")
engine = ScoringEngine(metrics=[ContextAdherence(judge, polls=1)], emitters=[OTelEmitter()])
{WATCH}
answer("answer")
print(engine.flush(30), in_threads)
""",
        SSL_CERT_FILE=str(tmp_path / "authority.pem"),
    )

    try:
        assert program.wait() == 0
        assert program.output == ["True []"]
        assert scores() == {"answer": 1.0}
        assert len(endpoint.requests) == 2
    finally:
        endpoint.close()


def test_a_judge_is_asked_while_the_program_imports_the_http_client(start, judge, scores):
    """`openai` takes httpx from `sys.modules`, as far as it is imported."""
    judge.release()
    program = start("""
        class Halfway:
            def find_spec(self, name, path=None, target=None):
                if name == "httpx._client":
                    answer("halfway")
                    engine.flush(30)

        sys.meta_path.insert(0, Halfway())
        import httpx
        answer("afterwards")
        engine.flush(30)
        print(engine.stats().errors)
    """)

    assert program.wait() == 0
    assert program.output == ["{}"]
    assert set(scores().values()) == {1.0}


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
