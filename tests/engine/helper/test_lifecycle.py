"""Applications in processes of their own: their helper starts without them and ends with them."""

from __future__ import annotations

import os
import signal

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="this system does not tell when a process ends"),
]


@pytest.mark.parametrize("guard", ["", 'if __name__ == "__main__": '])
def test_the_main_module_is_not_run_again_and_nothing_of_the_applications_is_imported(start, tmp_path, guard):
    (tmp_path / "settings_of_the_application.py").write_text("print('imported')")
    lines = start(f"""
        import settings_of_the_application
        print("run")
        engine = make_engine()
        {guard}ask(engine, "tell_modules")
        {guard}engine.flush(20)
    """).rest()

    assert lines[:2] == ["imported", "run"]
    assert "'ragspan.engine.helper.serving'" in lines[2]
    assert "settings_of_the_application" not in lines[2]
    assert len(lines) == 3


ASKING = """
    engine = make_engine()
    ask(engine, "tell_process")
    engine.shutdown(20)
"""


@pytest.mark.parametrize("options", [["-I"], ["-X", "dev", "-W", "error"], ["-E", "-s"]])
def test_it_does_not_matter_how_the_interpreter_was_started(start, options):
    application = start(ASKING, *options)
    [line] = application.rest()

    assert line.removeprefix("answer ").isdigit()
    assert line != f"answer {application.pid}"


def test_what_is_run_at_the_start_of_the_applications_interpreter_is_not_run_in_the_helper(start, tmp_path):
    """As `opentelemetry-instrument` does it."""
    folder = tmp_path / "instrumenting"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text("import sys; print('instrumented', file=sys.stderr)")
    lines = start(ASKING, PYTHONPATH=str(folder)).rest()

    assert lines[0] == "instrumented"
    assert len(lines) == 2


def test_the_folder_of_the_application_may_be_gone(start, tmp_path):
    folder = tmp_path / "gone"
    folder.mkdir()
    application = start(f"    os.rmdir(os.getcwd()){ASKING}", folder=folder)
    [line] = application.rest()

    assert line.removeprefix("answer ").isdigit()
    assert line != f"answer {application.pid}"


WORKING = """
    engine = make_engine()
    ask(engine, "tell_process", name="helper")
    engine.flush(20)
    {}
"""


@pytest.mark.parametrize(
    "ending",
    [
        "threading.Event().wait()",
        "os._exit(0)",
        "ask(engine, 'tell_process')",
        "engine.shutdown(20)",
    ],
)
def test_the_helper_ends_with_the_application(start, watch, ending):
    application = start(WORKING.format(ending))
    helper = watch(application.line().split()[-1])
    if "wait" in ending:
        application.process.kill()

    assert helper.ends()


@pytest.mark.parametrize(
    "fork",
    [
        "pid = os.fork() or os.execvp('sleep', ['sleep', '100'])",
        """
    import multiprocessing
    child = multiprocessing.get_context("fork").Process(target=threading.Event().wait)
    child.start()
    pid = child.pid
        """,
    ],
    ids=["executing", "multiprocessing"],
)
def test_a_child_that_lives_on_keeps_no_helper(start, watch, fork):
    application = start(
        WORKING.format(f"{fork.strip()}\n    print(pid, flush=True)\n    threading.Event().wait()"),
        PYTHONWARNINGS="ignore",
    )
    helper, child = watch(application.line().split()[-1]), watch(application.line())
    application.process.kill()

    assert helper.ends()
    assert child.lives()


def test_a_helper_that_hangs_in_a_judge_ends_with_the_application(start, watch, blockade):
    application = start(
        WORKING.format(f"ask(engine, {blockade.question!r}); ask(engine, 'loop_forever'); threading.Event().wait()")
    )
    helper = watch(application.line().split()[-1])
    blockade.wait_until_started()
    blockade.let_go()
    application.process.kill()

    assert helper.ends()


def test_interrupting_the_application_does_not_take_its_helper(start, watch, blockade):
    """Ctrl-C reaches all processes of the terminal's group."""
    application = start(f"""
        engine = make_engine()
        ask(engine, {blockade.question!r}, name="interrupted")
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            print("on its way out", flush=True)
            ask(engine, "tell_process", name="afterwards")
    """)
    helper = blockade.wait_until_started()
    os.killpg(application.pid, signal.SIGINT)
    assert application.line() == "on its way out"
    os.kill(helper, signal.SIGTERM)
    blockade.let_go()

    assert application.rest() == ["interrupted b'.'", f"afterwards {helper}"]


def test_a_judge_that_hangs_at_the_end_costs_no_more_than_the_exit_timeout(fakes, start, blockade, watch):
    application = start(f"""
        import atexit, time
        engine = make_engine(exit_timeout=0.5)
        ask(engine, "tell_process")
        engine.flush(20)
        ask(engine, {blockade.question!r})
        began = time.monotonic()
        atexit.register(lambda: print("took", time.monotonic() - began))
    """)
    helper = watch(application.line().split()[-1])
    blockade.wait_until_started()
    took = next(line for line in application.rest() if line.startswith("took"))

    assert float(took.removeprefix("took")) < 0.5 + fakes.GRACE
    assert helper.lives()  # although whoever read all that the application wrote did not wait for it
    blockade.let_go()
    assert helper.ends()


def test_no_zombie_and_no_warning_is_left_in_the_application(start):
    lines = start(
        """
        import gc, signal
        engine = make_engine()
        for number in range(3):
            ask(engine, "tell_process", name=str(number))
            engine.flush(20)
            os.kill(engine._work.helper.client.pid, signal.SIGKILL)
        ask(engine, "tell_process", name="last")
        engine.shutdown(20)
        gc.collect()
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            print("no child")
        """,
        *("-X", "dev", "-W", "error"),
    ).rest()

    assert [line.split()[0] for line in lines if "helper process ended" not in line] == ["0", "1", "2", "last", "no"]


def test_a_fork_in_mid_work_has_a_helper_of_its_own(fakes, make_engine, obedient, in_child, blockade, helper_of):
    emitter = fakes.ListEmitter()
    engine = make_engine(obedient.Obeying(), emitters=[emitter])
    engine.submit(fakes.a_record(question=blockade.question))
    helper = blockade.wait_until_started()

    def use():
        engine.submit(fakes.a_record(question="tell_process"))
        flushed = engine.flush(fakes.PATIENCE)
        return [flushed, emitter.scored[-1].outcomes["obeying"].explanation, helper_of(engine), os.getpid()]

    flushed, explanation, own_helper, child = in_child(use)
    assert flushed
    assert explanation == str(own_helper)
    assert own_helper not in {helper, child}

    blockade.let_go()
    assert engine.flush(fakes.PATIENCE)
    assert [scored.outcomes["obeying"].explanation for scored in emitter.scored] == ["b'.'"]
    assert helper_of(engine) == helper


def test_where_no_process_can_be_had_a_thread_computes(start):
    application = start("""
        sys.executable = "/not/there/python"
        engine = make_engine(name="short")
        ask(engine, "tell_process")
        engine.flush(20)
    """)
    lines = application.rest()

    assert lines[0].startswith("there is no helper process, its work is done in the application: it cannot be started")
    assert lines[1] == f"answer {application.pid}"
