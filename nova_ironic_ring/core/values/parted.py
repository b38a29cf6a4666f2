# SPDX-License-Identifier: Apache-2.0

"""An immutable mapping whose changed copies cost little."""

from collections.abc import Iterator, Mapping
from typing import TypeVar

# So many at most. A copy costs what one part has, and this.
_PARTS = 256

_Value = TypeVar('_Value')


class Parted(Mapping[str, _Value]):
    """A mapping in parts: a changed copy shares all parts but one.

    Nova's tracker goes from node to node, and what is remembered may change at
    each. With a copy of a dict each time, what N nodes cost would grow with
    the square of N.
    """

    def __init__(self, entries: Mapping[str, _Value] | None = None) -> None:
        """Begin with some entries.

        :param entries: the entries; None for none
        """
        parts: dict[int, dict[str, _Value]] = {}
        for key, value in (entries or {}).items():
            parts.setdefault(_part(key), {})[key] = value
        self._parts: Mapping[int, Mapping[str, _Value]] = parts

    def having(self, key: str, value: _Value) -> 'Parted[_Value]':
        """Return the mapping with one entry more, or another one.

        :param key: its key
        :param value: its value
        """
        part = _part(key)
        return self._with(part, {**self._parts.get(part, {}), key: value})

    def without(self, key: str) -> 'Parted[_Value]':
        """Return the mapping without an entry, which it need not have.

        :param key: the key
        """
        if key not in self:
            return self
        part = _part(key)
        return self._with(part, {
            each: value for each, value in self._parts[part].items()
            if each != key})

    def __getitem__(self, key: str) -> _Value:
        return self._parts[_part(key)][key]

    def __iter__(self) -> Iterator[str]:
        # The order of the parts is another one in each process.
        return iter(sorted(key for part in self._parts.values()
                           for key in part))

    def __len__(self) -> int:
        return sum(map(len, self._parts.values()))

    def __repr__(self) -> str:
        return f'Parted({dict(self)!r})'

    def _with(self, number: int, part: Mapping[str, _Value]
              ) -> 'Parted[_Value]':
        found: Parted[_Value] = Parted()
        found._parts = {**self._parts, number: part}
        return found


def _part(key: str) -> int:
    return hash(key) % _PARTS
