"""A wall clock that is set back while the engine works: nothing waits by it, and no span ends before it starts."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow

BACKWARDS = """
import itertools, time

_steps = itertools.count()
_began = time.time_ns()

def _time_ns():
    return _began - next(_steps) * 3_600_000_000_000 // 100  # 36 seconds back with every look

time.time_ns = _time_ns
time.time = lambda: _time_ns() / 1e9
"""


def test_a_clock_that_goes_backwards_costs_no_scores_and_puts_no_end_before_a_start(start, judge, scores, tmp_path):
    judge.release()
    (tmp_path / "backwards.py").write_text(BACKWARDS, encoding="utf-8")
    program = start(
        """
        import ragspan
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        kept = InMemorySpanExporter()
        provider.add_span_processor(SimpleSpanProcessor(kept))
        for number in range(5):
            with ragspan.capture(question="Why?", sink=engine, name=f"answer {number}") as captured:
                captured.contexts = ["Because."]
                captured.response = "Because."
        print(engine.flush(30))
        stats = engine.stats()
        print(stats.submitted, stats.scored, dict(stats.dropped), dict(stats.errors))
        print({span.end_time >= span.start_time > 0 for span in kept.get_finished_spans()})
        report = engine.shutdown(10)
        print(report.abandoned, 0 <= report.seconds < 10)
        """,
        "-c",
        "import backwards, runpy; runpy.run_path('program.py', run_name='__main__')",
    )

    assert program.wait() == 0
    assert program.output == ["True", "5 5 {} {}", "{True}", "0 True"]
    assert scores() == {f"answer {number}": 1.0 for number in range(5)}
