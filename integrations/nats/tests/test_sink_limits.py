"""The sink, with a stream or a broker that has no room, and with one that does not let it do everything."""

from __future__ import annotations

import pytest
from submitted import records, stored_ids, submit
from waiting import PATIENCE, until

MAY_ONLY_PUBLISH = """
authorization {
  users = [
    { user: "owner", password: "all" }
    { user: "app", password: "some",
      permissions: { publish: ["ragspan.records"], subscribe: ["_INBOX.>"] } }
  ]
}
"""


@pytest.fixture
def guarded(make_broker):
    """A broker whose owner may do all, and whose application may publish."""
    broker = make_broker(config=MAY_ONLY_PUBLISH, view="owner:all")
    broker.start()
    return broker


def as_user(broker, name, password):
    return f"nats://{name}:{password}@127.0.0.1:{broker.port}"


def test_a_full_stream_is_counted_as_such(broker, make_sink, caplog):
    broker.make_stream(name="ragspan", subjects=["ragspan.records"], max_msgs=5, discard="new")
    sink = make_sink(broker, retry_timeout=3.0)
    submit(sink, *records(20))
    assert len(stored_ids(broker)) == 5
    assert sink.stats().finished == 5
    assert sink.stats().dropped == {"stream_full": 15}
    assert caplog.messages[0] == "the stream ragspan takes no record now: maximum messages exceeded"


def test_what_waits_for_room_is_published_once_there_is_some(broker, make_sink):
    broker.make_stream(name="ragspan", subjects=["ragspan.records"], max_msgs=10, discard="new")
    sink = make_sink(broker)
    for record in records(15):
        sink.submit(record)
    until(lambda: sink.stats().errors.get("publish", 0) >= 5, what="refusals")
    first = set(stored_ids(broker))
    assert len(first) == 10
    assert not sink.flush(0)

    broker.purge("ragspan")

    assert sink.flush(PATIENCE)
    assert first | set(stored_ids(broker)) == {f"r-{number}" for number in range(15)}
    assert sink.stats().dropped == {}


def test_an_application_that_may_not_make_streams_publishes_all_the_same(guarded, make_sink, caplog):
    guarded.make_stream(name="ragspan", subjects=["ragspan.records"])
    sink = make_sink(as_user(guarded, "app", "some"))
    submit(sink, *records(10))
    assert len(stored_ids(guarded)) == 10
    said = "the stream ragspan could neither be found nor made: TimeoutError; records are published all the same"
    assert caplog.messages[-1] == said
    assert caplog.text.count('violation for publish to "$js.api.stream.info.ragspan') == 1
