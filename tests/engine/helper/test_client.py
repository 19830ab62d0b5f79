"""The helper of a worker: started, replaced, given up. The helpers are real, and so are those that are none."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import stat
import sys

import pytest
from waiting import PATIENCE

from ragspan.engine.helper import client, connection, serialization
from ragspan.engine.helper.client import HelperClient, HelperUnavailable
from ragspan.engine.helper.connection import HelperLost, HelperRefusal
from ragspan.records import RagRecord
from ragspan.throttled_log import ThrottledLog


@pytest.fixture
async def make_client(obedient):
    made = []

    metrics = pickle.dumps([obedient.Obeying()])

    def make():
        made.append(HelperClient(lambda: ("MetricService", metrics), max_questions=4, log=ThrottledLog()))
        return made[-1]

    yield make
    for one in made:
        one.close()
        await asyncio.sleep(0)


def obey(one, question="tell_process"):
    """Asks for a score of a record with this question."""
    record = RagRecord(question=question, contexts=[], response="")
    return one.ask("score", 0, 0, serialization.dumps(record))


async def ask(one):
    """The process that answers."""
    _, outcome = pickle.loads(await asyncio.wait_for(obey(one), 20))
    return int(outcome.explanation)


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


async def test_the_first_questions_start_one_helper_and_the_next_one_goes_there_too(make_client):
    one = make_client()
    assert one.pid is None
    pids = {*await asyncio.gather(*(ask(one) for _ in range(20))), await ask(one)}

    assert pids == {one.pid}
    assert one.pid != os.getpid()


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


SAYING = "import os, sys, threading; os.write(3, {!r}); threading.Event().wait()"


@pytest.mark.parametrize(
    ("script", "shell", "reason"),
    [
        ("exit 7", "/bin/sh", "it ended at once, with the status 7"),
        ("echo garbage; exit 0", "/bin/sh", "it ended at once, with the status 0"),
        ("kill -9 $$", "/bin/sh", "it ended at once, with the status -9"),
        (SAYING.format(bytes(7) + b"\x05trash"), None, "it ended at once"),
    ],
)
async def test_a_program_that_is_no_helper_is_given_up(make_client, interpreter, caplog, script, shell, reason):
    interpreter(script, shell=shell)
    one = make_client()
    with pytest.raises(HelperUnavailable):
        await ask(one)

    assert one.pid is None
    assert f"it cannot be started: {reason}" in caplog.text


@pytest.mark.parametrize("said", [b"", b"garbage without end"])
async def test_a_program_that_never_answers_is_ended_and_given_up(make_client, interpreter, monkeypatch, caplog, said):
    monkeypatch.setattr(client, "_MAX_START", 0.2)
    interpreter(SAYING.format(said), shell=None)
    one = make_client()
    asking = asyncio.ensure_future(ask(one))
    while one.pid is None:
        await asyncio.sleep(0)
    pid = one.pid
    with pytest.raises(HelperUnavailable):
        await asking

    assert "it cannot be started: it was not ready in time" in caplog.text
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_helper_of_another_version_is_given_up(make_client, monkeypatch, caplog):
    monkeypatch.setattr(client.serialization, "FORMAT", "of tomorrow")
    with pytest.raises(HelperUnavailable):
        await ask(make_client())

    assert "another version of ragspan has been installed" in caplog.text


async def test_who_has_no_time_left_does_not_keep_the_helper_from_being_started(make_client):
    one = make_client()
    impatient, patient = asyncio.ensure_future(ask(one)), asyncio.ensure_future(ask(one))
    await asyncio.sleep(0)
    impatient.cancel()

    assert await patient == one.pid


async def test_what_the_helper_cannot_do_is_refused_and_nothing_else_suffers(make_client):
    one = make_client()
    with pytest.raises(HelperRefusal, match="TypeError"):
        await one.ask("score", "too few arguments")

    assert await ask(one) == one.pid


async def test_a_question_that_is_asked_alone_waits_for_those_that_are_open(make_client, blockade):
    """Else one of them could kill the helper, and this question would be blamed."""
    one = make_client()
    await ask(one)
    open_question = asyncio.ensure_future(obey(one, blockade.question))
    await asyncio.to_thread(blockade.wait_until_started)
    alone = asyncio.ensure_future(one._ask_alone("flush", 0.0))
    await asyncio.sleep(0)
    assert len(one._current.open_questions) == 1
    blockade.let_go()

    assert await open_question
    with pytest.raises(HelperRefusal):
        await alone


async def test_a_helper_that_answers_nothing_is_killed_when_somebody_has_waited_in_vain(make_client, monkeypatch):
    monkeypatch.setattr(connection, "_MAX_SILENCE", 0.4)
    one = make_client()
    pid = await ask(one)
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(obey(one, "loop_forever"), 0.5)

    assert await ask(one) == one.pid
    assert one.pid != pid


async def test_a_start_that_failed_is_tried_again_after_a_pause(make_client, interpreter, monkeypatch, caplog):
    monkeypatch.setattr(client, "_FIRST_PAUSE", 0.05)
    one, python = make_client(), sys.executable
    interpreter("kill -9 $$")
    with pytest.raises(HelperUnavailable):
        await ask(one)
    monkeypatch.setattr(sys, "executable", python)
    with pytest.raises(HelperUnavailable):
        await ask(one)  # in the pause
    await asyncio.sleep(one._pause.remaining)

    assert await ask(one) == one.pid
    [line] = caplog.messages
    assert line.endswith("it ended at once, with the status -9; the next start is in 0 s")


async def test_what_was_asked_when_a_helper_died_waits_for_the_next_one_though_its_start_fails(
    make_client, interpreter, monkeypatch, blockade
):
    """It is not sent elsewhere: it may be what killed the helper."""
    monkeypatch.setattr(client, "_FIRST_PAUSE", 0.01)
    one, python = make_client(), sys.executable
    await ask(one)
    asking = asyncio.ensure_future(obey(one, blockade.question))
    killed = await asyncio.to_thread(blockade.wait_until_started)
    interpreter("exit 1")
    os.kill(killed, signal.SIGKILL)
    while one._pause.refusals < 2:
        await asyncio.sleep(0.01)
    monkeypatch.setattr(sys, "executable", python)
    blockade.let_go()

    assert await asyncio.wait_for(asking, 20)


@pytest.mark.slow
async def test_a_question_that_kills_helpers_costs_the_others_no_pause(make_client, monkeypatch, caplog):
    """It kills two: the second one, which had nothing else to do, is no sign of a helper that cannot live here."""
    monkeypatch.setattr(client, "_MAX_DEATHS", 3)
    one = make_client()
    for _ in range(2):
        with pytest.raises(HelperLost):
            await asyncio.wait_for(obey(one, "kill_process"), PATIENCE)

    assert await ask(one) == one.pid
    assert one.deaths == 4
    assert "in a row" not in caplog.text


async def test_a_helper_ends_when_it_gets_no_question_for_long(make_client, watch):
    """As the master of a server, which loads the application and forks, has no use for one."""
    one = make_client()
    pid = await ask(one)
    helper = one._current
    one._end_if_idle(helper, asked=helper.asked - 1)
    assert await ask(one) == pid
    idle = watch(pid)
    one._end_if_idle(helper, asked=helper.asked)

    assert one.pid is None
    assert await asyncio.to_thread(idle.ends)
    assert await ask(one) == one.pid
    assert one.deaths == 0
