# SPDX-License-Identifier: Apache-2.0

"""Merges what several threads have made of one value at the same time.

A thread copies the value, asks others for long without a lock, and changes its
copy. Then what it has changed, and nothing else, is changed in the value as it
is by then.
"""

from collections.abc import Mapping
from collections.abc import Set
import dataclasses
from typing import Any
from typing import TypeVar

_T = TypeVar('_T')
_NOTHING = object()


class Merged:
    """A dataclass of which threads may change several fields at a time.

    All other dataclasses are replaced as a whole.
    """


def merge(now: _T, before: _T, after: _T) -> _T:
    """Return a value with what was changed in a copy of it.

    Of mappings the values are merged, of sets and tuples the elements, and of
    :class:`Merged` the fields. Of all else, the copy replaces what it has
    changed.

    :param now: the value as it is now, which is not changed
    :param before: the value that was copied
    :param after: the copy, with the changes
    """
    if after is before or now is after:
        return now
    if now is before:
        return after
    return _merge(now, before, after)


def _merge(now: Any, before: Any, after: Any) -> Any:
    def are(kind: type) -> bool:
        return all(isinstance(each, kind) for each in (now, before, after))

    if are(Mapping):
        changed = {
            key: merge(now.get(key, _NOTHING), known, value)
            for key in {**before, **after}
            if (value := after.get(key, _NOTHING)) is not (
                known := before.get(key, _NOTHING)) and value != known}
        return {key: value for key, value in {**now, **changed}.items()
                if value is not _NOTHING} if changed else now
    if are(Set):
        return now - (before - after) | (after - before)
    if are(tuple):
        return tuple(
            each for each in now if each in after or each not in before
        ) + tuple(each for each in after
                  if each not in before and each not in now)
    if are(Merged):
        fields: Any = dataclasses.fields(now)
        return dataclasses.replace(now, **{
            field.name: merge(*(getattr(each, field.name)
                                for each in (now, before, after)))
            for field in fields})
    return now if after == before else after
