"""The helper of a worker: started, replaced, given up. The helpers are real, and so are those that are none."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import sys

import pytest

from ragspan.engine.helper import client, connection
from ragspan.engine.helper.client import HelperClient, HelperUnavailable, log_note
from ragspan.engine.helper.connection import HelperLost, HelperRefusal
from ragspan.throttled_log import ThrottledLog


@pytest.fixture
async def make_client():
    made = []

    def make(greeting=lambda: ("judge",)):
        made.append(HelperClient(greeting, max_questions=4, log=ThrottledLog(), on_note=log_note))
        return made[-1]

    yield make
    for one in made:
        one.hang_up()
        await asyncio.sleep(0)
        one.let_go()


def forget_nothing(_helper):
    """The payload of a question that any helper can answer."""
    return ()


async def ask(one):
    return await asyncio.wait_for(one.ask("forget", forget_nothing), 20)


@pytest.fixture
def interpreter(monkeypatch, tmp_path):
    """Puts a program in place of the interpreter."""

    python = sys.executable

    def put(script, *, shell="/bin/sh"):
        path = tmp_path / "python-of-another-kind"
        path.write_text(f"#!{shell or python}\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setattr(sys, "executable", str(path))

    return put


async def test_the_first_question_starts_a_helper_and_the_next_one_goes_there_too(make_client):
    one = make_client()
    assert one.pid is None
    await ask(one)
    first = one.pid
    await ask(one)

    assert one.pid == first != os.getpid()


async def test_questions_that_come_at_the_same_time_start_one_helper(make_client, monkeypatch):
    started = []
    start = client.Helper
    monkeypatch.setattr(client, "Helper", lambda **arguments: started.append(start(**arguments)) or started[-1])
    one = make_client()
    await asyncio.gather(*(ask(one) for _ in range(20)))

    assert len(started) == 1


SAYING = "import os, sys, threading; os.write(int(sys.argv[4]), {!r}); threading.Event().wait()"


async def test_a_program_that_answers_trash_is_given_up(make_client, interpreter, caplog):
    interpreter(SAYING.format(bytes(7) + b"\x05trash"), shell=None)
    with pytest.raises(HelperUnavailable):
        await ask(make_client())

    assert "it cannot be started: it ended at once" in caplog.text


@pytest.mark.parametrize(
    ("executable", "reason"),
    [
        (None, "sys.executable is None"),
        ("", "sys.executable is ''"),
        ("/bin/sh", "sys.executable is '/bin/sh', which does not look like a Python interpreter"),
        ("/not/there/python", "No such file or directory"),
    ],
)
async def test_without_an_interpreter_there_is_no_helper_and_that_is_logged_once(
    make_client, monkeypatch, caplog, executable, reason
):
    monkeypatch.setattr(sys, "executable", executable)
    one = make_client()
    for _ in range(3):
        with pytest.raises(HelperUnavailable):
            await ask(one)

    [line] = caplog.messages
    assert line.startswith("there is no helper process, its work is done in the application: it cannot be started")
    assert reason in line


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("exit 7", "it ended at once, with the status 7"),
        ("echo garbage; exit 0", "it ended at once, with the status 0"),
        ("kill -9 $$", "it ended at once, with the status -9"),
    ],
)
async def test_a_program_that_is_no_helper_is_given_up(make_client, interpreter, caplog, script, reason):
    interpreter(script)
    one = make_client()
    with pytest.raises(HelperUnavailable):
        await ask(one)

    assert one.pid is None
    assert f"it cannot be started: {reason}" in caplog.text


@pytest.mark.parametrize("said", [b"", b"garbage without end"])
async def test_a_program_that_never_answers_is_ended_and_given_up(make_client, interpreter, monkeypatch, caplog, said):
    monkeypatch.setattr(client, "_START_TIMEOUT", 0.4)
    interpreter(SAYING.format(said), shell=None)
    one = make_client()
    asking = asyncio.ensure_future(ask(one))
    while one.pid is None:
        await asyncio.sleep(0)
    pid = one.pid
    with pytest.raises(HelperUnavailable):
        await asking

    assert "it was not ready within 0 s" in caplog.text
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_greeting_that_cannot_be_made_is_the_reason(make_client, caplog):
    one = make_client(lambda: int("greeting"))
    with pytest.raises(HelperUnavailable):
        await ask(one)

    assert "it cannot be started: invalid literal for int()" in caplog.text


async def test_a_helper_of_another_version_is_given_up(make_client, monkeypatch, caplog):
    monkeypatch.setattr(client.wire, "FORMAT", "of tomorrow")
    with pytest.raises(HelperUnavailable):
        await ask(make_client())

    assert "another version of ragspan has been installed" in caplog.text


async def test_who_has_no_time_left_does_not_keep_the_helper_from_being_started(make_client):
    one = make_client()
    impatient, patient = asyncio.ensure_future(ask(one)), asyncio.ensure_future(ask(one))
    await asyncio.sleep(0)
    impatient.cancel()

    assert await patient is None


@pytest.mark.parametrize("begun", [False, True])
async def test_a_start_that_is_cancelled_is_not_the_end_of_all_helpers(make_client, begun):
    one = make_client()
    asking = asyncio.ensure_future(ask(one))
    while one._ready is None:
        await asyncio.sleep(0)
    if begun:
        await asyncio.sleep(0)
    one._ready.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking

    assert await ask(one) is None


async def test_what_the_helper_cannot_do_is_refused_and_nothing_else_suffers(make_client):
    one = make_client()
    with pytest.raises(HelperRefusal, match="ValueError"):
        await one.ask("judge", forget_nothing)

    assert await ask(one) is None


async def test_a_payload_that_cannot_be_made_takes_no_place(make_client):
    one = make_client()
    for _ in range(10):
        with pytest.raises(ZeroDivisionError):
            await one.ask("forget", lambda _: 1 // 0)

    assert await ask(one) is None


async def test_a_question_that_is_lost_is_asked_once_more_and_then_given_up(make_client):
    one, asked = make_client(), []

    def kill(helper):
        asked.append(helper.process.pid)
        helper.process.kill()
        return ()

    with pytest.raises(HelperLost):
        await one.ask("forget", kill)

    assert len(set(asked)) == 2
    assert await ask(one) is None


async def test_a_silent_helper_is_killed_when_somebody_has_waited_in_vain(make_client, stopped, monkeypatch):
    one = make_client()
    await ask(one)
    silent = one.pid
    stopped(silent)
    monkeypatch.setattr(connection, "_MAX_SILENCE", 0.0)
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(one.ask("forget", forget_nothing), 0.05)

    assert await ask(one) is None
    assert one.pid != silent


async def test_a_helper_that_still_speaks_is_not_killed(make_client, stopped):
    one = make_client()
    await ask(one)
    pid = one.pid
    stopped(pid)
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(one.ask("forget", forget_nothing), 0.05)
    os.kill(pid, signal.SIGCONT)

    assert await ask(one) is None
    assert one.pid == pid


async def test_after_hanging_up_there_is_no_other_helper(make_client):
    one = make_client()
    await ask(one)
    pid = one.pid
    one.hang_up()
    with pytest.raises(HelperUnavailable):
        await ask(one)
    one.let_go()

    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
