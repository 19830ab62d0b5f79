"""Messages that are put aside, whatever they hold."""

from __future__ import annotations

import os
import re
import time
from datetime import datetime

import pytest
from letter_parts import STREAM, aside, aside_record, command, found, listed, make_streams, returned
from nats.errors import Error
from submitted import record_of
from worker_parts import PARENT, a_record

from ragspan_nats.message import EARLIER_DELIVERIES

MAX_PAYLOAD = 1024 * 1024


@pytest.fixture
def fleet(broker):
    """A broker with the streams of a fleet."""
    make_streams(broker)
    return broker


class TestPutAside:
    def test_a_message_is_kept_as_it_was_with_the_reason(self, fleet):
        message = aside_record(fleet, a_record(parent=PARENT), reason="judge_outage", detail="all of it", number=5)

        (letter,) = found(fleet)
        facts = letter.facts()
        assert (facts["reason"], facts["detail"], facts["deliveries"]) == ("judge_outage", "all of it", 5)
        assert (facts["record"], letter.payload, letter.is_whole) == ("record-1", message.payload, True)
        assert abs(datetime.fromisoformat(facts["dead_lettered"]).timestamp() - time.time()) < 60
        again = record_of(letter)
        assert again == a_record(parent=PARENT)

    def test_a_message_that_is_put_aside_twice_is_there_once(self, fleet):
        for _ in range(2):  # the first worker died before it could take it out of the stream
            aside(fleet, payload=b"poison", sequence=7)

        assert len(found(fleet)) == 1

    def test_messages_of_a_stream_that_was_made_anew_are_others(self, fleet):
        """It counts from 1 again."""
        aside(fleet, payload=b"one", sequence=1)
        aside(fleet, payload=b"other", sequence=1)

        assert [letter.payload for letter in found(fleet)] == [b"one", b"other"]

    def test_deliveries_before_it_was_a_dead_letter_count(self, fleet):
        aside(fleet, number=2, headers={EARLIER_DELIVERIES: "5"})

        assert found(fleet)[0].deliveries == 7

    def test_without_the_stream_it_is_an_error(self, broker):
        with pytest.raises(Error):
            aside(broker)


HOSTILE = {
    "new lines": {"X-Note": "a\r\nRagspan-Reason: forged", "Content-Encoding": "b\nc\rd"},
    "not ASCII": {"Content-Encoding": "Größe 量 \u2028 \ud7ff", "Nats-Msg-Id": "große Zahl"},
    "control signs": {"Ragspan-Record": "\x1b[31mred\x07", "Nats-Msg-Id": "\x1b]0;title\x07"},
    "markup": {"Nats-Msg-Id": "[/bold][red]x[/nothing]", "Ragspan-Detail": "[/]"},
    "ours": {"Ragspan-Reason": "forged", "Ragspan-Deliveries": "many", "Ragspan-Left-Out": "5", "Nats-Rollup": "all"},
    "no numbers": {EARLIER_DELIVERIES: "-1", "Ragspan-Dead-Lettered-At": "1e400"},
    "huge": {"Content-Encoding": "x" * 900_000, "Nats-Msg-Id": "y" * 100_000, "X" * 100_000: "1"},
}


def publishable(headers):
    """Those that client and broker let anybody publish."""
    names = [name for name in headers if re.fullmatch(r"[!-9;-~]{1,1000}", name) and not name.startswith("Nats-")]
    return {name: headers[name].encode("ascii", "ignore").decode()[:30_000] for name in names[:400]}


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
        assert (letter.payload, letter.is_whole) == (b"poison", True)
        done = command(fleet, "list")
        assert done.exit_code == 0, done.output
        assert "invalid_record" in done.output
        assert not unprintable(done.output)
        assert command(fleet, "retry", "--all").exit_code == 0
        assert [message.payload for message in returned(fleet)] == [b"poison"]
        assert found(fleet) == []

    def test_whoever_may_publish_to_the_dead_letters_disturbs_nobody(self, fleet, headers):
        fleet.publish(STREAM.dead_letters, b"anything", publishable(headers))
        aside(fleet, payload=b"poison")

        assert [letter["reason"] for letter in listed(fleet)][-1] == "invalid_record"
        done = command(fleet, "list")
        assert done.exit_code == 0
        assert not unprintable(done.output)


class TestSizes:
    def test_a_message_that_leaves_no_room_for_the_reason_is_put_aside_without_its_payload(self, fleet):
        payload = os.urandom(MAX_PAYLOAD)
        aside(fleet, payload=payload)

        (letter,) = found(fleet)
        assert (letter.payload, letter.is_whole, letter.reason) == (b"", False, "invalid_record")
        assert "no room" in listed(fleet)[0]["detail"]

    def test_a_letter_without_its_payload_is_not_returned(self, fleet):
        aside(fleet, payload=os.urandom(MAX_PAYLOAD))
        aside(fleet, payload=b"small")

        done = command(fleet, "retry", "--all")

        assert done.exit_code == 1
        assert "1 records returned" in done.output
        assert "could not be returned" in done.output
        assert [letter.is_whole for letter in found(fleet)] == [False]

    def test_a_large_message_is_read_and_returned_whole(self, fleet):
        payload = os.urandom(MAX_PAYLOAD - 2_000)
        aside(fleet, payload=payload)

        assert command(fleet, "retry", "--all").exit_code == 0
        assert [message.payload for message in returned(fleet)] == [payload]

    def test_a_broker_that_allows_less_is_respected(self, make_broker):
        broker = make_broker(config="max_payload: 2000")
        broker.start()
        make_streams(broker)
        for size in (100, 1_950, 2_000):
            aside(broker, payload=b"x" * size)

        assert [len(letter.payload) for letter in found(broker)] == [100, 0, 0]
