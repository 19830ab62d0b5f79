"""One tracker for each sink, whichever handlers report to it."""

from __future__ import annotations

import weakref

from ragspan.records import RecordSink
from ragspan_langchain.tracker import RunTracker

_trackers: weakref.WeakValueDictionary[int, RunTracker] = weakref.WeakValueDictionary()


def tracker_for(sink: RecordSink) -> RunTracker:
    """The tracker of this sink.

    It is found by the sink's identity, which stays the sink's as long as the tracker lives and holds it. Handlers made
    one per request thus see each other's runs, and a request that meets two of them is still one record.
    """
    tracker = _trackers.get(id(sink))
    if tracker is None:
        tracker = _trackers.setdefault(id(sink), RunTracker(sink))
    return tracker
