"""Dead letters: what is put aside, whatever it holds, and as a person looks at it and returns it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import datetime

import pytest
from nats.js import JetStreamContext
from submitted import record_of
from typer.testing import CliRunner
from worker_parts import PARENT, a_delivery, a_record

from ragspan.cli import app
from ragspan_nats import command as command_module
from ragspan_nats.connection import ensure_streams
from ragspan_nats.delivery import Disposition
from ragspan_nats.message import dead_letters, deliver_again, message_of, publish_dead_letter
from ragspan_nats.settings import Stream

STREAM = Stream()
MAX_PAYLOAD = 1024 * 1024


def make_streams(broker, **limits):
    broker.ask(lambda client: ensure_streams(client.jetstream(), Stream(**limits)))


def aside(broker, *, reason="invalid_record", detail="it is none", **message):
    """Put a message aside, as a worker does."""
    verdict = Disposition(ending="dead_lettered", reason=reason, detail=detail)
    delivery = a_delivery(**message)
    broker.ask(lambda client: publish_dead_letter(client, STREAM, delivery, verdict))
    return delivery


def aside_record(broker, record=None, **about):
    """Put a record aside; the message that it came by."""
    message = message_of(record or a_record(), compress_above=10**6)
    aside(broker, payload=message.payload, headers=dict(message.headers), **about)
    return message


def found(broker):
    async def all_of_them(client):
        return [letter async for letter in dead_letters(client, STREAM)]

    return broker.ask(all_of_them)


def command(broker, *arguments, **environment):
    return CliRunner().invoke(app, ["dead-letters", *map(str, arguments), "--broker", broker.url], env=environment)


def listed(broker, *arguments):
    """What `list --json` prints."""
    done = command(broker, "list", "--json", *arguments)
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.output.splitlines()]


def returned(broker):
    return broker.messages(STREAM.name)


@pytest.fixture
def fleet(broker):
    """A broker with the streams of a fleet."""
    make_streams(broker)
    return broker


class TestPutAside:
    def test_a_message_is_there_once_and_those_of_a_stream_that_was_made_anew_are_others(self, fleet):
        for payload in (b"one", b"one", b"other"):  # a worker that dies cannot take it out of the stream
            aside(fleet, payload=payload, sequence=1)

        assert [letter.payload for letter in found(fleet)] == [b"one", b"other"]

    def test_a_message_is_kept_as_it_was_with_the_reason(self, fleet):
        message = aside_record(fleet, a_record(parent=PARENT), reason="judge_outage", detail="all of it", number=5)

        (letter,) = found(fleet)
        facts = letter.facts()
        assert (facts["reason"], facts["detail"], facts["deliveries"]) == ("judge_outage", "all of it", 5)
        assert (facts["record"], letter.payload) == ("record-1", message.payload)
        assert abs(datetime.fromisoformat(facts["dead_lettered"]).timestamp() - time.time()) < 60


HOSTILE = {
    "new lines": {"X-Note": "a\r\nRagspan-Reason: forged", "Content-Encoding": "b\nc\rd"},
    "not ASCII": {"Content-Encoding": "Größe 量 \u2028 \ud7ff", "Nats-Msg-Id": "große Zahl"},
    "control signs": {"Ragspan-Record": "\x1b[31mred\x07", "Nats-Msg-Id": "\x1b]0;title\x07"},
    "markup": {"Nats-Msg-Id": "[/bold][red]x[/nothing]", "Ragspan-Detail": "[/]"},
    "ours": {"Ragspan-Reason": "forged", "Ragspan-Deliveries": "many", "Ragspan-Left-Out": "5", "Nats-Rollup": "all"},
    "huge": {"Content-Encoding": "x" * 900_000, "Nats-Msg-Id": "y" * 100_000, "X" * 100_000: "1"},
}


def unprintable(text):
    """What a terminal would follow rather than show."""
    return {sign for sign in text if not sign.isprintable()} - {"\n"}


@pytest.mark.parametrize("headers", HOSTILE.values(), ids=HOSTILE.keys())
class TestHostileHeaders:
    def test_the_message_is_put_aside_for_our_reason_listed_and_returned(self, fleet, headers):
        aside(fleet, payload=b"poison", headers=headers, number=2, detail="no record")

        (letter,) = found(fleet)
        facts = letter.facts()
        assert (facts["reason"], facts["detail"], facts["deliveries"]) == ("invalid_record", "no record", 2)
        assert letter.payload == b"poison"
        done = command(fleet, "list")
        assert done.exit_code == 0, done.output
        assert "invalid_record" in done.output
        assert not unprintable(done.output)
        assert command(fleet, "retry", "--all").exit_code == 0
        assert [message.payload for message in returned(fleet)] == [b"poison"]
        assert found(fleet) == []


class TestSizes:
    def test_a_letter_without_its_payload_is_not_returned(self, fleet):
        large = os.urandom(MAX_PAYLOAD - 2_000)
        aside(fleet, payload=os.urandom(MAX_PAYLOAD))
        aside(fleet, payload=large)
        assert "no room" in listed(fleet)[0]["detail"]

        done = command(fleet, "retry", "--all")

        assert done.exit_code == 1
        assert [message.payload for message in returned(fleet)] == [large]
        assert "1 record returned" in done.output
        assert "could not be returned" in done.output
        assert [letter.payload for letter in found(fleet)] == [b""]

    def test_a_broker_that_allows_less_is_respected(self, make_broker):
        broker = make_broker(config="max_payload: 2000")
        broker.start()
        make_streams(broker)
        for size in (100, 1_950, 2_000):
            aside(broker, payload=b"x" * size)

        assert [len(letter.payload) for letter in found(broker)] == [100, 0, 0]


class TestList:
    def test_a_table_shows_why_and_no_text_of_users(self, fleet):
        aside_record(fleet, a_record(question="a secret question"), reason="judge_outage", detail="2 of 4", number=5)

        done = command(fleet, "list")

        assert done.exit_code == 0
        line = next(line for line in done.output.splitlines() if "record-1" in line)
        assert all(text in line for text in ("judge_outage", "5", "2 of 4"))
        assert "1 dead letters in ragspan-dead-letters: judge_outage 1" in done.output
        assert "secret" not in done.output

    def test_a_reader_that_has_left_is_no_trouble_with_the_broker(self, fleet):
        aside_record(fleet)
        reading, writing = os.pipe()
        os.close(reading)
        listing = [sys.executable, "-m", "ragspan.cli", "dead-letters", "list", "--broker", fleet.url]

        done = subprocess.run(listing, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
        os.close(writing)

        assert (done.returncode, "cannot be used" in done.stderr) == (1, False)

    def test_json_has_a_line_for_each_the_oldest_first_and_a_reason_narrows_it_down(self, fleet):
        for number, reason in enumerate("abb"):
            aside_record(fleet, a_record(f"record-{number}"), reason=reason, detail="all", number=5)

        letters = listed(fleet)
        assert {letter.pop("dead_lettered")[:2] for letter in letters} == {"20"}
        assert letters == [
            {"number": number, "reason": reason, "deliveries": 5, "record": f"record-{number - 1}", "detail": "all"}
            for number, reason in ((1, "a"), (2, "b"), (3, "b"))
        ]
        assert command(fleet, "list").output.endswith("3 dead letters in ragspan-dead-letters: b 2, a 1\n")
        assert [letter["number"] for letter in listed(fleet, "--reason", "b")] == [2, 3]
        assert listed(fleet, "--reason", "c") == []


class TestRetry:
    def test_a_record_goes_back_as_it_was(self, fleet):
        message = aside_record(fleet, a_record(parent=PARENT), number=5)
        fleet.publish(STREAM.records, message.payload, dict(message.headers))
        fleet.purge(STREAM.name)  # it knows the message's id still

        done = command(fleet, "retry", 1)

        assert (done.exit_code, done.output) == (0, "1 record returned to the stream ragspan\n")
        (back,) = returned(fleet)
        assert back.payload == message.payload
        assert record_of(back) == a_record(parent=PARENT)
        assert found(fleet) == []

    def test_a_number_that_is_not_there_is_named_and_the_others_go_back(self, fleet):
        for number, reason in enumerate("ab"):
            aside_record(fleet, a_record(f"record-{number}"), reason=reason)

        done = command(fleet, "retry", 1, 2, 77, "--reason", "a")

        assert done.exit_code == 1
        assert "1 record returned" in done.output
        assert "2, 77" in done.output
        assert len(returned(fleet)) == 1

    @pytest.mark.parametrize("arguments", [(), (1, "--all"), (0,), ("x",)], ids=str)
    def test_what_is_to_be_returned_has_to_be_said(self, fleet, arguments):
        assert command(fleet, "retry", *arguments).exit_code == 2

    def test_a_crash_between_publishing_and_deleting_returns_it_once(self, fleet, monkeypatch):
        aside_record(fleet)
        (letter,) = found(fleet)

        class Crash(Exception):
            pass

        async def crash(client):
            async def die(*_):
                raise Crash

            monkeypatch.setattr(JetStreamContext, "delete_msg", die)
            with pytest.raises(Crash):
                await deliver_again(client, letter, STREAM.records)
            monkeypatch.undo()

        fleet.ask(crash)
        assert (len(returned(fleet)), len(found(fleet))) == (1, 1)

        assert command(fleet, "retry", "--all").exit_code == 0
        assert (len(returned(fleet)), len(found(fleet))) == (1, 0)

    def test_a_stream_of_records_that_is_full_is_named_with_what_went_back_before(self, broker):
        make_streams(broker, max_bytes=6_000)
        for _ in range(5):
            aside(broker, payload=os.urandom(2_000))

        done = command(broker, "retry", "--all")

        assert done.exit_code == 1
        assert "2 records returned" in done.output
        assert "maximum bytes" in done.output
        assert len(found(broker)) == 3


class TestWithoutStreamOrBroker:
    @pytest.fixture(autouse=True)
    def impatient(self, monkeypatch):
        monkeypatch.setattr(command_module, "_CONNECT", 1.5)

    def test_a_missing_stream_is_named(self, broker):
        done = command(broker, "retry", "1", RAGSPAN_NATS_STREAM="other")

        assert done.exit_code == 1
        assert f"there is no stream other-dead-letters at 127.0.0.1:{broker.port}" in done.output

    def test_a_broker_that_is_away_is_named_within_seconds(self, make_broker):
        broker = make_broker()

        done = command(broker, "list")

        assert done.exit_code == 1
        assert f"the broker at 127.0.0.1:{broker.port} cannot be used: it does not answer" in done.output

    def test_a_password_is_shown_nowhere(self, make_broker, caplog):
        broker = make_broker(config='authorization { user: "ann", password: "right-secret" }')
        broker.start()
        address = f"nats://ann:wrong-secret@127.0.0.1:{broker.port}"

        done = CliRunner().invoke(app, ["dead-letters", "list", "--broker", address])

        assert done.exit_code == 1
        assert "secret" not in done.output + caplog.text
