"""What engines are told at the end of the process, in one that goes on."""

from ragspan.engine.process_end import process_end


class Told:
    """An engine that notes what it is told."""

    can_wait, exit_timeout = True, 5.0

    def __init__(self, told):
        self.told = told

    def __getattr__(self, name):
        return lambda *given, **named: self.told.append((name, *given, *named.values()))


def test_the_first_process_of_a_container_goes_on_and_its_end_has_the_rest_of_the_same_time(monkeypatch):
    monkeypatch.setattr(process_end, "is_over", False)
    process_end.begin_in_child()  # no engine of another test hears of it
    engines = first, _ = Told(told := []), Told(told)
    for engine in engines:
        process_end.watch(engine)
    first.can_wait = False
    assert (process_end.end_by_signal(), told) == (False, []), "the signal interrupted what this would wait for"
    first.can_wait = True
    with monkeypatch.context() as first_process:
        first_process.setattr("os.getpid", lambda: 1)
        assert (process_end.end_by_signal(), process_end.is_over) == (True, False)
    assert (process_end.end_by_signal(), process_end.is_over) == (True, True)

    names = [name if name != "keep_places" else given[0] for name, *given in told]
    assert names == [*[True] * 2, *["flush"] * 2, *[False] * 2, *[True] * 2, *["end"] * 2, *["tell_end"] * 2]
    flushed, more, ended, last = (given[0] for name, *given in told if name in {"flush", "end"})
    assert 5.0 >= flushed > more > ended > last > 4.5
