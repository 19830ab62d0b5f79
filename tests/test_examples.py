"""The examples run as they stand."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from servers.broker import server_program

EXAMPLES = Path(__file__).parents[1] / "examples"

pytestmark = pytest.mark.slow


def run(name, *arguments):
    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:ragspan", EXAMPLES / name, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("quickstart.py", "faithfulness: 0.50 ✗ fail"),
        ("langchain_rag.py", '"ragspan.score.faithfulness": 1.0'),
        ("llama_index_rag.py", '"ragspan.score.faithfulness": 1.0'),
        ("custom_metric.py", "-> 1.00 ✓ pass"),
        ("agentic_rag_graph.py", "Within ten days."),
        ("llama_index_workflow.py", '"ragspan.score.faithfulness": 1.0'),
        ("openinference_side_by_side.py", "\n  evaluation faithfulness "),  # below the chain's span
        ("unknown_contexts.py", "python faithfulness: 0.5"),  # in a block of ragspan.capture
        ("unknown_contexts.py", "application faithfulness: 0.5"),  # by the spans of OpenInference
    ],
)
def test_an_example_shows_its_scores(name, expected):
    assert expected in run(name)


def test_recorded_answers_are_replayed_through_a_chain_and_scored(tmp_path):
    rows = [
        {"question": "When?", "contexts": ["Beta settles at night."], "response": "Beta settles at night."},
        {"question": None, "contexts": ["Alpha stores profiles."], "response": "Everything costs 99 dollars in Rome."},
        {"question": "Who?", "contexts": [], "response": "I cannot say."},
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    shown = run("replay.py", file)

    assert "3 answers replayed" in shown
    assert "faithfulness              2 scored   mean 0.500" in shown
    assert "1 without a score   faithfulness: no_contexts" in shown
    assert "submitted=3" in shown


def test_scores_go_out_by_plain_otlp(otlp_listener):
    shown = run("otlp.py", otlp_listener.url)

    assert "were sent" in shown
    names = {span.span_id: span.name for span in otlp_listener.spans}
    answers = [span for span in otlp_listener.spans if span.name == "invoke_workflow payments"]
    assert [names[span.parent_id] for span in answers] == ["POST /ask", "POST /ask"]
    assert sorted(span.attributes["ragspan.label.faithfulness"] for span in answers) == ["fail", "pass"]


def test_a_service_streams_its_answers_and_scores_them_before_it_ends():
    command = [sys.executable, EXAMPLES / "fastapi_app.py", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as service:
        started = (re.search(r"running on http://127\.0\.0\.1:(\d+)", line) for line in service.stderr)
        port = next(int(found[1]) for found in started if found)
        for number in range(3):
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
                connection.request("GET", f"/ask?question=When&session=s{number}")
                assert connection.getresponse().read() == b"Beta settles card payments after midnight."
        service.send_signal(signal.SIGTERM)  # as a container's manager does
        printed, log = service.communicate(timeout=60)

    assert "scored 3 answers, 0 were left at the end" in log
    assert printed.count('"ragspan.score.faithfulness": 1.0') == 3
    assert {f'"session.id": "s{number}"' in printed for number in range(3)} == {True}


def fleet_environment(**variables):
    server_program()
    return {**os.environ, **variables}


def test_a_fleet_scores_all_answers_of_an_application_and_ends():
    done = subprocess.run(
        [sys.executable, EXAMPLES / "fleet" / "run.py"],
        env=fleet_environment(RAGSPAN_JUDGE="nonsense", OTEL_TRACES_EXPORTER="none"),  # what is set here is not its own
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    scored = re.findall(
        r"^traces   \| (.+\?) +context_adherence \d\.\d\d  faithfulness (\d\.\d\d)  by (worker-[12])$",
        done.stdout,
        re.MULTILINE,
    )
    assert len({question for question, _, _ in scored}) == len(scored) == 12
    assert {worker for _, _, worker in scored} == {"worker-1", "worker-2"}
    assert {question.strip() for question, faithfulness, _ in scored if float(faithfulness) < 0.1} == {
        "When is an invoice due?",
        "Who sends invoices?",
    }
    assert done.stdout.endswith("all 12 answers are scored\n")
