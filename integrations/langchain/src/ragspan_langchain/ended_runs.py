"""A memory of runs that are over, so that what goes on in the background afterwards can be told from a new request."""

from __future__ import annotations

from array import array


class EndedRuns:
    """Remembers the ids of runs that ended lately, in a fixed amount of memory.

    A table with one place for each value of an id's last bits, where a new id takes the place of an older one. The last
    bits of a run's id are random, so some `_PLACES` runs are known.
    """

    _PLACES = 1 << 15

    def __init__(self) -> None:
        self._ids = array("Q", bytes(8 * self._PLACES))

    def add(self, key: int) -> None:
        key &= 0xFFFF_FFFF_FFFF_FFFF
        self._ids[key % self._PLACES] = key

    def __contains__(self, key: int) -> bool:
        key &= 0xFFFF_FFFF_FFFF_FFFF
        return self._ids[key % self._PLACES] == key
