"""What the first of two readings of a table leaves, where a judge is asked about a share of the rows.

In the first reading the embedded judge scores each row. When all rows have been read it is known which ones the judge is asked
about, and the second reading has it score them. Many tables can be read only once, so the rows wait with the embedded judge's
scores in a temporary file, which has no name.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterator
from dataclasses import replace

from ragspan.engine.helper.messages import pack, unpack
from ragspan.engine.table_share import TableShare
from ragspan.engine.threads import call_guarded
from ragspan.evaluate.results import BadRow, EvaluatedRow

_PROTOCOL = 5  # of pickle


class FirstReading:
    """Rows that the embedded judge has scored, which are given out with why the judge is asked about each."""

    def __init__(self, share: TableShare) -> None:
        self.rows = 0
        """Bad ones included."""
        self.share = share
        self._file = tempfile.TemporaryFile(prefix="ragspan-")  # noqa: SIM115 - closed with this object

    def close(self) -> None:
        self._file.close()

    def add(self, row: EvaluatedRow | BadRow) -> None:
        """Add a row with its scores and its doubt.

        Raises:
            OSError: the file cannot be written.
        """
        pickled, _ = call_guarded(pickle.dumps, row, _PROTOCOL)
        if pickled is None and isinstance(row, EvaluatedRow):
            pickled = _plainly_pickled(row)
        self._file.write(pickled or b"")
        self.rows += 1
        if isinstance(row, EvaluatedRow):
            self.share.add(row.record.record_id, row.doubt)

    def second(self) -> Iterator[EvaluatedRow | BadRow]:
        """All rows in their order. What an earlier run has decided of its rows stays."""
        reasons = iter(self.share.asked())
        self._file.seek(0)
        for _ in range(self.rows):
            row: EvaluatedRow | BadRow = pickle.load(self._file)  # noqa: S301 - what `add` wrote
            if isinstance(row, EvaluatedRow):
                reason = next(reasons)
                row = row if row.outcomes else replace(row, asked=reason)
            yield row


def _plainly_pickled(row: EvaluatedRow) -> bytes:
    """For metadata that may hold anything. What a metric of the user's own says may, too: then the row is read again."""
    plain = replace(row, record=unpack(pack(row.record)))
    pickled, _ = call_guarded(pickle.dumps, plain, _PROTOCOL)
    return pickled or pickle.dumps(replace(plain, screened={}), _PROTOCOL)
