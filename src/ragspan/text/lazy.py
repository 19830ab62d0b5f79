"""Attributes that are computed when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from ragspan.turns import give_turn

_T = TypeVar("_T")


class Lazy(Generic[_T]):
    """`functools.cached_property` without its lock: up to Python 3.11, a fork could leave it locked for ever."""

    def __init__(self, compute: Callable[[Any], _T]) -> None:
        self._compute, self._name = compute, compute.__name__
        self.__doc__ = compute.__doc__

    def __get__(self, owner: Any, kind: type) -> _T:
        give_turn()
        value = owner.__dict__[self._name] = self._compute(owner)
        return value
