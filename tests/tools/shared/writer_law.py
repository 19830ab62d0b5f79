"""What holds for every native writer, whatever its backend: each integration's tests derive from this.

The fixtures are the integration's: `server`, a `ScoreServer` with `scores`, the values it has by metric; `make_writer`;
`make_scored`; `secret`, a key that the writer was given; and `environment`, the variables that say the same.
"""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

import pytest
import requests
from programs import run_python
from whole_records import WholeRecords

from ragspan import ConfigurationError
from ragspan.outcomes import MetricFailure, NotApplicable, Score
from ragspan.telemetry import is_suppressed
from ragspan.usage import Usage

PATIENCE = 60.0
WHOLE = WholeRecords(Path(__file__).with_name("whole_requests.json"))
APPLICATION = Path(__file__).parents[2] / "applications" / "configured.py"


class WriterLaw:
    @pytest.mark.parametrize(
        "trouble",
        [500, 503, 403, (200, "<html>"), (200, {}), 204],  # the last three are another server's greetings
        ids=str,
    )
    def test_what_the_server_does_not_take_now_is_tried_again(self, server, deliver, make_scored, trouble):
        server.script.append(trouble)
        writer = deliver(make_scored())

        assert server.scores == {"faithfulness": 0.5}
        assert (writer.stats().delivered, len(server.script)) == (1, 0)

    def test_what_is_known_of_scores_is_written_as_it_was_read(self, server, deliver, make_scored, backend):
        """After a change that is meant: `WRITE_RECORDS=1 python -m pytest tests/tools`, and read the difference."""
        score = Score(
            value=0.5,
            threshold=0.8,
            explanation="One claim has no support.",
            judge="openai:gpt-4o-mini",
            prompt_version="7",
            fallback="budget_exhausted",
            details={"claims": 2},
            usage=Usage(requests=2, input_tokens=900, output_tokens=40, usd=0.0002),
        )
        deliver(make_scored({"faithfulness": score, "completeness": Score(value=0.9)}), explanations=True)

        requests = [[one.method, one.path, one.query, one.content] for one in server.requests]
        known, found = WHOLE.told(backend.writer.name, sorted(requests, key=json.dumps))
        assert found == known

    def test_an_outage_loses_nothing(self, server, make_writer, make_scored):
        server.stop()
        writer = make_writer()
        writer.emit(make_scored({name: Score(value=0.5) for name in ("a", "b", "c")}))
        assert writer.flush(0.3) is False

        server.start()
        assert writer.flush(PATIENCE)
        assert server.scores == {"a": 0.5, "b": 0.5, "c": 0.5}

    def test_a_server_that_does_not_answer_in_time_is_asked_again(self, server, deliver, make_scored):
        server.script.append(server.hangs)
        deliver(make_scored(), timeout=0.3)

        assert server.scores == {"faithfulness": 0.5}

    def test_a_second_scoring_of_a_record_replaces_the_first(self, server, deliver, make_scored):
        for value in (0.25, 0.25, 0.75):
            deliver(make_scored({"faithfulness": Score(value=value)}))

        assert server.scores == {"faithfulness": 0.75}
        assert server.number_of_scores == 1

    def test_a_score_that_is_refused_costs_the_others_nothing(self, server, deliver, make_scored):
        server.refused = {"refused"}
        writer = deliver(make_scored({name: Score(value=0.5) for name in ("a", "b", "refused", "c", "d")}))

        assert set(server.scores) == {"a", "b", "c", "d"}
        assert sum(writer.stats().rejected.values()) == 1
        assert server.number_of_scores == 4, "what was taken twice replaced itself"

    def test_a_request_that_is_too_large_is_halved(self, server, deliver, make_scored):
        server.limit = 3_000
        deliver(
            make_scored({f"metric_{n}": Score(value=0.5, explanation="word " * 100) for n in range(9)}),
            explanations=True,
        )

        assert server.number_of_scores == 9

    def test_two_answers_keep_their_scores_apart(self, server, make_writer, make_scored):
        writer = make_writer()
        for record_id in ("record-1", "record-2"):
            writer.emit(make_scored(record_id=record_id))

        assert writer.flush(PATIENCE)
        assert server.number_of_scores == 2

    def test_only_scores_are_written(self, server, deliver, make_scored):
        failure = MetricFailure(error_type="RateLimitError", message="a user's words")
        deliver(make_scored({"faithfulness": failure, "completeness": NotApplicable(reason="no_contexts")}))

        assert server.requests == []

    def test_a_key_is_shown_and_logged_nowhere(self, server, make_writer, make_scored, backend, caplog):
        server.script.append(401)
        writer = make_writer()
        writer.emit(make_scored())
        writer.flush(PATIENCE)

        assert caplog.messages
        assert backend.secret not in caplog.text + repr(writer) + repr(writer.client.endpoint)

    def test_its_requests_are_not_the_applications(self, server, deliver, make_scored, caplog):
        """An instrumentation of Requests asks whether it should look away, and a log at level INFO shows none of them."""
        caplog.set_level(logging.INFO)
        seen, send = set(), requests.Session.send

        def watching(session, request, **arguments):
            seen.add(is_suppressed())
            return send(session, request, **arguments)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(requests.Session, "send", watching)
            deliver(make_scored({name: Score(value=0.5) for name in "abcdefgh"}))

        assert seen == {True}
        assert caplog.messages == []

    @pytest.mark.parametrize(("option", "value"), [("timeout", 0), ("timeout", float("inf"))])
    def test_an_option_that_cannot_be_is_named(self, make_writer, option, value):
        with pytest.raises(ConfigurationError, match=f"^{option} is {value}, but should be a number of seconds, more"):
            make_writer(**{option: value})

    def test_what_is_no_address_is_refused_without_showing_it(self, make_writer, backend):
        said = rf"^{backend.address}( .*)? should be an address such as http://host:port$"
        with pytest.raises(ConfigurationError, match=said):
            make_writer(**{backend.address: "pass:word@nowhere"})

    @pytest.mark.slow
    def test_a_name_and_variables_bring_a_programs_scores_there(self, server, backend):
        emitters = ["otel", backend.writer.name]

        done = run_with(backend.variables(server.url), server, APPLICATION, json.dumps({"emitters": emitters}))

        assert (done.returncode, done.stderr) == (0, "")
        assert set(server.scores) >= {"faithfulness", "context_adherence"}


def run_with(variables, server, *arguments):
    """Run Python with these variables; spans go to the server, too."""
    environment = os.environ | {"OTEL_EXPORTER_OTLP_ENDPOINT": server.url, "COLUMNS": "200"} | variables
    return run_python(*arguments, environment=environment)
