"""Who handles SIGTERM, when handlers come and go and threads other than the main one answer."""

from __future__ import annotations

import signal

import pytest

pytestmark = pytest.mark.slow

LATE = """
engine.shutdown()
signal.signal(signal.SIGTERM, signal.SIG_DFL)  # as in a process where no engine has been made

def serve():
    global engine
    while sys._current_frames()[threading.main_thread().ident].f_code.co_name not in main_is_in:
        time.sleep(0.01)
    engine = ScoringEngine(metrics=[ContextAdherence(judge, polls=1)], emitters=[OTelEmitter(score_wait=60)], exit_timeout=30)
    answer("first")
    wait_for_test()
    answer("second")
    threading.Event().wait()

thread = threading.Thread(target=serve, daemon=True)
thread.start()
"""


def test_an_engine_that_another_thread_made_lets_sigterm_wait(start, judge, scores):
    until_set = "while signal.getsignal(signal.SIGTERM) is signal.SIG_DFL: time.sleep(0.01)"  # by the main thread, once it wakes
    late = LATE.replace("wait_for_test()", f"wait_for_test()\n    {until_set}")
    program = start('main_is_in = {"<module>"}' + late + "\nwhile True: time.sleep(0.05)")
    judge.wait_until_asked(1)
    program.let_go_on()
    judge.wait_until_asked(1)
    program.send(signal.SIGTERM)
    judge.release()

    assert program.wait() == -signal.SIGTERM
    assert scores() == {"first": 1.0, "second": 1.0}


def test_a_main_thread_that_cannot_set_a_handler_is_named_in_the_log(start, judge):
    program = start('main_is_in = {"join", "_wait_for_tstate_lock"}' + LATE + "\nthread.join()")
    judge.wait_until_asked(1)

    program.line_with("SIGTERM will end this process without its last scores: the main thread waits")


def test_a_handler_from_before_uvicorn_is_called_when_uvicorn_has_ended(start, judge, scores):
    """uvicorn sets it again, and raises the signal for it: what comes after the server is the application's to say."""
    judge.release()
    program = start("""
        import uvicorn

        ended = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: (print("handled"), ended.set()))

        async def application(scope, receive, send):
            if scope["type"] == "http":
                answer("answer")
                await send({"type": "http.response.start", "status": 200, "headers": []})
                await send({"type": "http.response.body", "body": b"done"})

        class Server(uvicorn.Server):
            async def startup(self, sockets=None):
                await super().startup(sockets)
                answer("at start")
                signal.raise_signal(signal.SIGTERM)

        Server(uvicorn.Config(application, port=0, lifespan="off")).run()
        print("still here", ended.wait(30))
    """)

    assert program.wait() == 0
    assert program.output[-2:] == ["handled", "still here True"]
    assert scores() == {"at start": 1.0}
