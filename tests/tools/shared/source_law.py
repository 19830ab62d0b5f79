"""What holds for every tool whose stored traces ragspan reads: each integration's tests derive from this.

The tool's server has recorded four answers. The fixture `stored_in` says where: the project that has them, a project without
traces, and when the newest of them began.
"""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from ragspan.cli import app


@pytest.fixture
def ragspan(backend, server, monkeypatch):
    """Runs the command for this server."""
    for name, value in backend.variables(server.url).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("RAGSPAN_JUDGING", "thread")
    return lambda *arguments: CliRunner().invoke(app, [str(one) for one in arguments])


@pytest.fixture
def evaluate(ragspan, backend, stored_in):
    def run(*arguments, project=stored_in.project):
        place = ("--from", backend.writer.name, "--project", project)
        return ragspan("evaluate", *place, "--metrics", "faithfulness", *arguments)

    return run


@pytest.fixture
def pull(ragspan, backend, stored_in, tmp_path):
    """Reads the labels of this name; what the command said, and the table's rows."""

    def run(name="correct"):
        output = tmp_path / "labels.jsonl"
        place = ("labels", "pull", backend.writer.name, "--project", stored_in.project)
        done = ragspan(*place, "--name", name, "-o", output)
        assert done.exit_code == 0, done.output
        return done, [json.loads(line) for line in output.read_text().splitlines()]

    return run


class SourceLaw:
    def test_stored_answers_are_scored_over_all_pages(self, evaluate, server, backend, tmp_path):
        done = evaluate("-o", tmp_path / "scores.jsonl")

        assert done.exit_code == 0, done.output
        rows = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()[1:]]
        assert sorted(row["outcomes"]["faithfulness"]["value"] for row in rows) == [0.0, 1.0, 1.0, 1.0]
        assert {request.headers["authorization"] for request in server.requests} == {f"Bearer {backend.secret}"}

    def test_where_a_page_is_larger_than_we_read_smaller_ones_are_asked_for(self, evaluate, server):
        def too_much(request):
            """Two or more traces, or a hundred or more spans, take more than the bound."""
            number = len(request.query.get("trace_ids", ()))
            is_large = number > 1 or ("spans" in request.path and int(request.query["limit"][0]) >= 100)
            return (200, "[" + "0," * (8 << 20)) if is_large else None

        server.script.extend([too_much] * 50)
        done = evaluate()

        assert done.exit_code == 0, done.output
        assert "4 rows evaluated" in done.stdout
        assert any(too_much(request) for request in server.requests)

    def test_older_traces_are_left_out(self, evaluate, stored_in):
        assert "1 row evaluated" in evaluate("--since", stored_in.newest).stdout

    def test_a_project_without_traces_has_no_rows(self, evaluate, stored_in):
        done = evaluate(project=stored_in.empty)

        assert done.exit_code == 1, done.output  # nothing was scored
        assert "there are no answers" in done.stderr

    @pytest.mark.parametrize(
        ("reply", "reason"),
        [
            ((401, "{}"), "http_401 (it wants other credentials)"),
            ((404, "Project not found"), "http_404 (it has no such project"),
            ((503, ""), "http_503"),
            ((200, '{"data": [{'), "no_json"),
            ((200, '{"hello": "you"}'), "not as expected (KeyError)"),
        ],
    )
    def test_what_cannot_be_read_is_said_without_the_key(self, evaluate, server, backend, reply, reason):
        server.script.append(reply)

        done = evaluate()

        assert done.exit_code == 2
        assert f"{backend.writer.name} cannot be read: " in done.stderr
        assert reason in done.stderr
        assert backend.secret not in done.output

    def test_an_outage_is_said(self, evaluate, server, backend):
        server.stop()
        try:
            done = evaluate()
        finally:
            server.start()

        assert done.exit_code == 2
        assert f"{backend.writer.name} cannot be read: no server listens there: connection refused" in done.stderr

    def test_what_judges_wrote_is_no_label_and_the_names_that_people_used_are_listed(self, pull):
        done, rows = pull("faithfulness")

        assert rows == []
        assert "no answer has a label 'faithfulness' that a person gave; there are: 'correct'" in done.stderr

    def test_an_explanation_that_is_sent_back_quotes_the_texts_that_the_tool_has(self, evaluate, backend, server):
        evaluate("--to-trace")

        assert "unsupported: " in str([request.body for request in server.requests])
