from __future__ import annotations


def test_a_burst_of_more_than_a_second_holds_is_dropped_and_counted(fakes, make_engine):
    engine = make_engine(fakes.ConstantMetric(), max_records_per_second=0.001)
    for _ in range(5):
        engine.submit(fakes.a_record())
    assert engine.flush(fakes.PATIENCE)

    stats = engine.stats()
    assert (stats.submitted, stats.scored, stats.dropped) == (5, 1, {"rate_limited": 4})


def test_a_rate_that_is_not_reached_drops_nothing(fakes, make_engine):
    engine = make_engine(fakes.ConstantMetric(), max_records_per_second=1000)
    for _ in range(100):
        engine.submit(fakes.a_record())
    assert engine.flush(fakes.PATIENCE)

    assert (engine.stats().scored, engine.stats().dropped) == (100, {})
