# SPDX-License-Identifier: Apache-2.0

"""Limits on what the owner of a node may write about it in Ironic.

A member of the project that owns a node may write anything into its properties
(``baremetal:node:update:properties`` in Ironic's policy), and set its traits.
Nova reads some of them, and writes the results into its database or to
Placement.
"""

from collections.abc import Iterable, Mapping
import dataclasses
from typing import Any

#: The largest number that a column of Nova's table ``compute_nodes`` takes: a
#: signed integer of 32 bits.
LARGEST = 2 ** 31 - 1

# The largest sizes that are accepted, far above real machines: 256 TiB of
# memory, 16 PiB of disk, 65 536 processors.
_MOST = {'memory_mb': 2 ** 28, 'local_gb': 2 ** 24, 'cpus': 2 ** 16}
_LONGEST_WORD = 255
_MOST_CAPABILITIES = 100
# Characters that all capabilities of a node may have in a message of Nova's,
# which has thousands of rows, and in which a quote is four characters. They
# are also a part of a column of 65 535 bytes in MySQL
# (``compute_nodes.stats``).
_LONGEST_TEXT = 4096
# Characters there that are around a capability, and instead of a letter.
_AROUND, _ESCAPED = 12, 7
# Statistics that Nova counts itself, in the same column: its scheduler expects
# numbers, and if one is not a number, it fails for all nodes that a server
# could have.
_COUNTED = frozenset(('failed_builds', 'io_workload', 'num_instances',
                      'uptime'))
_COUNTED_BY = ('num_os_type_', 'num_proj_', 'num_task', 'num_vm_')
# Characters of all traits of a node: Nova's client puts them into one address,
# and web servers take some thousand characters. Ironic allows 50 of 255.
_LONGEST_TRAITS = 2048
# Characters of a value that a complaint shows.
_SHOWN = 40
# Characters of a line of a log or of a terminal: a failed step of a deployment
# says some hundred.
_LONGEST_LINE = 8192


@dataclasses.dataclass(frozen=True)
class Properties:
    """Properties of a node that can be used.

    :ivar said: by name, as Ironic has them; of those that Nova reads, an
        impossible size is 0, and other impossible values are left out
    :ivar complaints: what was wrong, each as a part of a sentence
    """

    said: Mapping[str, Any]
    complaints: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Traits:
    """Traits of a node that can be written to Placement.

    :ivar said: the traits; if some are left out, the shortest are kept
    :ivar complaints: what was wrong, each as a part of a sentence
    """

    said: tuple[str, ...]
    complaints: tuple[str, ...] = ()


def traits(said: Iterable[str] | None) -> Traits:
    """Return the traits of a node, without those beyond the limit.

    :param said: the traits as Ironic has them, if there are any
    """
    found = tuple(said or ())
    room = _LONGEST_TRAITS
    kept: list[str] = []
    for trait in sorted(found, key=lambda trait: (len(trait), trait)):
        room -= len(trait) + 1
        if room < 0:
            return Traits(tuple(kept), (
                f'there are too many traits, {len(",".join(found))} '
                'characters',))
        kept.append(trait)
    return Traits(found)


def number(value: int) -> int:
    """Return the nearest number that fits a column of Nova.

    :param value: the number
    """
    return max(-LARGEST, min(value, LARGEST))


def properties(said: Mapping[str, Any] | None) -> Properties:
    """Return the properties of a node without impossible ones.

    :param said: the properties as Ironic has them, if there are any
    """
    found = dict(said or {})
    complaints: list[str] = []
    for name in _MOST:
        if found.get(name) is not None:
            found[name] = _size(name, found[name], complaints)
    architecture = found.get('cpu_arch')
    if architecture is not None and not _is_word(architecture):
        complaints.append(_complaint('cpu_arch', architecture))
        del found['cpu_arch']
    capabilities = found.get('capabilities')
    if isinstance(capabilities, str) and capabilities:
        found['capabilities'] = _capabilities(capabilities, complaints)
    elif capabilities:
        complaints.append(_complaint('capabilities', capabilities))
        del found['capabilities']
    return Properties(found, tuple(complaints))


def _size(name: str, value: Any, complaints: list[str]) -> int:
    """Return a size, as Nova reads it; 0 for an impossible one."""
    try:
        found = int(value)
    except (OverflowError, TypeError, ValueError):
        found = -1
    if 0 <= found <= _MOST[name]:
        return found
    complaints.append(_complaint(name, value))
    return 0


def _capabilities(said: str, complaints: list[str]) -> str:
    """Return capabilities without those that Nova cannot store."""
    kept: dict[str, str] = {}
    before, room = len(complaints), _LONGEST_TEXT
    for capability in said.split(','):
        name, _, value = capability.partition(':')
        name = name.strip()
        room -= _weight(capability)
        if room < 0 or len(kept) >= _MOST_CAPABILITIES:
            complaints.append(
                f'there are too many capabilities, {len(said)} characters')
            break
        if _is_word(name) and _is_word(value) and ':' not in value and not (
                name in _COUNTED or name.startswith(_COUNTED_BY)):
            kept[name] = value
        else:
            complaints.append(_complaint('a capability', capability))
    return said if len(complaints) == before else ','.join(
        f'{name}:{value}' for name, value in kept.items())


def _weight(capability: str) -> int:
    """Return the most characters of a capability in a message.

    The message is JSON, as a text in the JSON of its envelope: both escape.
    """
    return _AROUND + sum(
        1 if letter.isascii() and letter.isprintable() and (
            letter not in '"\\') else _ESCAPED if letter < '\U00010000'
        else 2 * _ESCAPED for letter in capability)


def _is_word(value: Any) -> bool:
    """Return whether a value is a text that a log or a table can show."""
    return isinstance(value, str) and (
        0 < len(value) <= _LONGEST_WORD) and value.isprintable()


def shown(value: Any) -> str:
    """Return a value as a log can show it, whatever it is.

    :param value: the value, written by anybody
    :returns: a few printable characters of ASCII
    """
    text = ascii(value)
    return text if len(text) <= _SHOWN else f'{text[:_SHOWN]}...'


def line(text: str) -> str:
    """Return a text that is one line of a log or of a terminal.

    What others write, such as an agent whose error Ironic keeps, could
    otherwise begin a new line that looks like one of this service, or move the
    cursor of a terminal.

    :param text: the text, parts of which may be written by anybody
    :returns: the text with escapes in place of what is not printable, cut
        after 8 192 characters
    """
    if len(text) > _LONGEST_LINE:
        text = f'{text[:_LONGEST_LINE]}...'
    if text.isprintable():
        return text
    return ''.join(
        letter if letter.isprintable()
        else letter.encode('unicode_escape').decode() for letter in text)


def _complaint(name: str, value: Any) -> str:
    """Return the complaint about an impossible value."""
    return f'{name} is {shown(value)}'
