"""The deploy table: what runs the application, and how ragspan gets in. `docs/environments.md` shows it, `test_deploys.py` runs it.

python tests/shared/deploy_table.py writes the page anew.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "environments.md"
WAYS = {
    "configure": ("`configure()` in the application", ()),
    "run": ("`ragspan run`", ("-m", "ragspan.cli", "run")),
    "instrument": ("[`opentelemetry-instrument`](tracing-tools.md)", ()),
}
"""How ragspan gets in: the page's words for it, and what stands before the command."""


@dataclass(frozen=True, kw_only=True)
class Row:
    name: str
    """As the page shows it."""
    command: tuple[str, ...]
    """What Python runs."""
    needs: tuple[str, ...] = ()
    """Modules without which the row cannot run."""
    usual: tuple[str, ...] = ()
    """The ways that run with the other slow tests; the others in `make test-deploys`."""
    note: str = ""


def gunicorn(kind: str, *options: str) -> tuple[str, ...]:
    application = "answers:asgi" if "sgi" in kind or "uvicorn" in kind else "answers:wsgi"
    return (
        *(
            "-m",
            "gunicorn",
            "--no-control-socket",
            "--workers=2",
            "--threads=4",
            "--graceful-timeout=60",
            "--timeout=120",
        ),
        *(f"--worker-class={kind}", "--bind=127.0.0.1:0", *options, application),
    )


UVICORN = ("-m", "uvicorn", "--port=0", "--no-access-log", "--timeout-worker-healthcheck=20", "answers:asgi")
_WORKER_CLASS = "uvicorn_worker.UvicornWorker"

ROWS = (
    Row(name="uvicorn", command=UVICORN, usual=("configure",)),
    Row(name="uvicorn `--workers 2`", command=(*UVICORN, "--workers=2"), usual=("run",)),
    Row(name="uvicorn `--reload`", command=(*UVICORN, "--reload"), usual=("run",)),
    Row(name="gunicorn `sync`", command=gunicorn("sync")),
    Row(name="gunicorn `sync --preload`", command=gunicorn("sync", "--preload"), usual=("instrument",)),
    Row(name="gunicorn `gthread`", command=gunicorn("gthread"), usual=("run",)),
    Row(name="gunicorn `gthread --preload`", command=gunicorn("gthread", "--preload")),
    Row(name="gunicorn `asgi`", command=gunicorn("asgi")),
    Row(name="gunicorn `asgi --preload`", command=gunicorn("asgi", "--preload"), usual=("run",)),
    Row(name="gunicorn, `uvicorn_worker.UvicornWorker`", command=gunicorn(_WORKER_CLASS), needs=("uvicorn_worker",)),
    Row(
        name="the same, `--preload`",
        command=gunicorn(_WORKER_CLASS, "--preload"),
        needs=("uvicorn_worker",),
    ),
    Row(
        name="hypercorn `--workers 2`", command=("-m", "hypercorn", "--bind=127.0.0.1:0", "--workers=2", "answers:asgi")
    ),
    Row(
        name="Celery `prefork`",
        command=(
            *("-m", "celery", "-A", "tasks", "worker", "--concurrency=2", "--pool=prefork"),
            *("--without-gossip", "--without-mingle", "--without-heartbeat"),
        ),
        needs=("celery",),
    ),
    Row(name="`multiprocessing.Pool`, fork", command=("pool.py", "fork"), usual=("configure",)),
    Row(
        name="`multiprocessing.Pool`, spawn",
        command=("pool.py", "spawn"),
        usual=("run",),
        note='`configure()` stands in a module that the children import, not below `if __name__ == "__main__"`',
    ),
    Row(
        name="an asyncio loop that is closed before the end",
        command=("closed_loop.py",),
        usual=("configure",),
        note="but where SIGTERM comes within a fifth of a second after the loop has closed",
    ),
)


@dataclass(frozen=True, kw_only=True)
class Other:
    """What else the page tells, and the test that shows it."""

    name: str
    test: str
    """Below `tests/environments`: file and function."""
    needs: str = "nothing"
    outcome: str = "kept"


OTHERS = (
    Other(
        name="the program ends, `sys.exit`, an exception",
        test="test_exits.py::test_a_program_that_ends_in_mid_work_finishes_it",
    ),
    Other(
        name="SIGTERM that nobody handles",
        test="test_exits.py::test_a_sigterm_that_nobody_handles_waits_for_scores_and_ends_the_program_all_the_same",
        outcome="kept; then the process ends by the signal",
    ),
    Other(
        name="SIGTERM that the application handles",
        test="test_exits.py::test_a_handler_of_the_application_decides_what_sigterm_does",
        outcome="its handler decides; kept if Python ends as usual",
    ),
    Other(
        name="SIGHUP that nobody handles, such as a terminal that is closed",
        needs="a handler, such as `signal.signal(signal.SIGHUP, lambda *_: sys.exit(0))`",
        test="test_exits.py::test_sighup_loses_what_waits_unless_it_is_handled",
        outcome="kept; lost without the handler",
    ),
    Other(
        name="threads that go on answering until the end, after SIGTERM too",
        test="test_exits.py::test_what_threads_answer_until_the_end_is_scored_or_counted_in_one_line_of_the_log",
        outcome="scored, or counted as `shutdown` in one line of the log; what was answered before the end is kept",
    ),
    Other(
        name="Ctrl-C, SIGTERM twice, SIGTERM to the whole process group",
        test="test_deploys.py::test_other_signals_and_more_of_them_lose_no_answer",
    ),
    Other(
        name="`--max-requests`, `--limit-max-requests`",
        test="test_deploys.py::test_workers_that_end_after_a_number_of_requests_lose_no_answer",
    ),
    Other(
        name="`--reload`, and a file changes",
        test="test_deploys.py::test_a_server_that_reloads_on_a_change_loses_no_answer",
    ),
    Other(
        name="SIGHUP to gunicorn", test="test_deploys.py::test_workers_that_gunicorn_replaces_at_sighup_lose_no_answer"
    ),
    Other(
        name="gunicorn `gevent`",
        test="test_greenlets.py::test_clients_of_a_gevent_server_get_their_own_replies_and_effects_happen_once",
    ),
    Other(
        name="a program with gevent or eventlet",
        needs="with eventlet a longer `RAGSPAN_EXIT_TIMEOUT`, 60 s say: it scores more slowly",
        test="test_greenlets.py::test_each_answer_of_a_pool_of_greenlets_is_given_once_and_scored_once",
    ),
    Other(
        name="gunicorn `eventlet`",
        needs="gunicorn has it no more since release 27; with an older one take `gevent`",
        test="test_greenlets.py::test_gunicorn_has_no_worker_for_eventlet",
        outcome="not supported",
    ),
    Other(
        name="uWSGI",
        needs='`--enable-threads --single-interpreter --hook-master-start "unix_signal:15 gracefully_kill_them_all" --worker-reload-mercy 60`, '
        "and no `--die-on-term`, which ends a worker that is answering at once",
        test="test_deploys.py::test_workers_of_uwsgi_that_are_ended_gracefully_lose_no_answer",
    ),
    Other(
        name="a subinterpreter, as mod_wsgi makes for each application",
        needs="`WSGIApplicationGroup %{GLOBAL}`: Python cannot end a subinterpreter that has threads",
        test="test_machines.py::test_a_subinterpreter_scores_nothing_and_says_so_and_the_process_ends",
        outcome="kept; nothing is scored in a subinterpreter, and the log says so",
    ),
    Other(
        name="Celery `threads`, `solo`",
        test="test_servers.py::test_a_celery_worker_that_is_told_to_end_finishes_what_it_has_in_work",
    ),
    Other(
        name="Celery `--max-tasks-per-child`",
        test="test_servers.py::test_a_celery_child_that_has_done_its_number_of_tasks_finishes_what_they_left",
    ),
    Other(
        name="`multiprocessing.Process`: fork, spawn, forkserver",
        test="test_exits.py::test_children_of_multiprocessing_finish_their_own",
    ),
    Other(
        name="`ProcessPoolExecutor`, `Pool` with `maxtasksperchild`",
        test="test_exits.py::test_a_pool_of_processes_finishes_what_its_workers_have_in_work",
    ),
    Other(
        name="a fork that ends by `os._exit`, such as a job of RQ",
        needs="`ragspan.default_engine().flush(timeout=10)` at the end of each job",
        test="test_exits.py::test_parent_and_child_each_finish_their_own",
        outcome="kept; lost without the flush",
    ),
    Other(
        name="a program that replaces itself by `os.execv`, as reloaders do",
        needs="the same before",
        test="test_exits.py::test_a_program_that_replaces_itself_keeps_what_it_has_flushed",
        outcome="kept; lost without the flush",
    ),
    Other(
        name="a daemon that forks twice",
        test="test_exits.py::test_a_daemon_that_leaves_its_parents_and_its_terminal_finishes_its_work",
    ),
    Other(
        name="threads that outlive the main one",
        test="test_exits.py::test_a_thread_that_outlives_the_main_one_has_its_answers_scored",
    ),
    Other(
        name="functions that are frozen between requests (AWS Lambda)",
        needs="a flush at the end of each request",
        test="test_machines.py::test_a_function_that_is_frozen_between_its_requests",
    ),
    Other(
        name="an event loop for each request, in many threads",
        test="test_machines.py::test_a_program_with_an_event_loop_for_each_request",
    ),
    Other(name="Jupyter, the kernel is shut down", test="test_machines.py::test_a_notebook_whose_kernel_is_shut_down"),
    Other(
        name="the first process of a container (PID 1)",
        needs="a handler of SIGTERM, such as `signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))`: the kernel ignores the signal without one",
        test="test_machines.py::test_the_first_process_of_a_container_that_is_told_to_end",
    ),
    Other(
        name="a read-only root, no home, no place for temporary files",
        test="test_machines.py::test_where_nothing_can_be_written_and_nobody_has_a_home",
    ),
    Other(
        name="a daemon without stdin, stdout and stderr",
        test="test_machines.py::test_a_daemon_whose_descriptors_are_closed",
    ),
    Other(
        name="PyInstaller",
        test="test_machines.py::test_what_pyinstaller_made_judges_in_a_thread_though_its_name_is_that_of_an_interpreter",
        outcome="kept; judges compute in a thread, and the log says so",
    ),
)


def _markdown(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |".replace("|  |", "| |") for line in lines)


def tables() -> dict[str, str]:
    """The page's tables by the names of their places."""
    ways = tuple(words for words, _ in WAYS.values())
    return {
        "deploys": _markdown(("", *ways, ""), [(row.name, *["kept"] * len(ways), row.note) for row in ROWS]),
        "others": _markdown(
            ("where, or how it ends", "what to set", "answers and scores"),
            [(other.name, other.needs, other.outcome) for other in OTHERS],
        ),
    }


def with_tables(page: str) -> str:
    """The page with its tables as they are now."""
    for place, table in tables().items():
        page = re.sub(
            rf"(<!-- {place} -->\n).*?(<!-- end -->)",
            lambda match, table=table: f"{match[1]}{table}\n{match[2]}",
            page,
            flags=re.DOTALL,
        )
    return page


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
