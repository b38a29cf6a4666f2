# SPDX-License-Identifier: Apache-2.0

"""Compares memory and threads of services at the end with those before."""

import collections
from collections.abc import Iterator, Mapping
import dataclasses
import os
import pathlib
import time

from nova_ironic_ring.lab import cloud
from nova_ironic_ring_tools.soak import threads
from nova_ironic_ring_tools.soak import world as worlds

# Its pools are larger, and full from the beginning.
_CONDUCTOR = 'nova-conductor'
#: The services that run from the beginning to the end.
LASTING = (_CONDUCTOR, *(hosts[0] for hosts in worlds.GROUPS.values()))
# How many times more memory is allowed: a process of Python keeps some of the
# memory that it has used.
_MOST_MEMORY = 1.3
_MOST_THREADS = 10
# How many threads of pools may be idle: nova-compute has four pools of four
# threads each, and one of one thread, by the options of the soak. A short soak
# ends before all of them are full.
_MOST_IDLE = 20
# Seconds until all work is over, and garbage has been collected.
_REST = 60


@dataclasses.dataclass(frozen=True)
class Size:
    """The memory and threads of a service.

    :ivar memory: its memory, in MiB
    :ivar threads: how many threads it has
    :ivar kinds: how many threads it has of each kind, as far as that is known
    """

    memory: int
    threads: int
    kinds: collections.Counter[str] = dataclasses.field(
        default_factory=collections.Counter)


#: The memory and threads of each service, by its name.
Sizes = Mapping[str, Size]


def environment(host: str) -> dict[str, str]:
    """Return the variables that a nova-compute is to have in its environment.

    :param host: its name
    """
    if host not in LASTING:
        return {}
    path = [str(pathlib.Path(__file__).parent / 'collecting'),
            *filter(None, [os.environ.get('PYTHONPATH')])]
    return {'PYTHONPATH': os.pathsep.join(path)}


def at_rest(lab: cloud.Lab) -> Sizes:
    """Wait a while, and return the sizes of the services in ``LASTING``.

    :param lab: the lab, to which nothing happens meanwhile
    """
    time.sleep(_REST)
    found = {}
    for name in LASTING:
        process = lab.state.process(name)
        # Before the report, which takes memory.
        memory, count = process.memory() >> 20, process.threads()
        # Python 3.11 may stand still for ever when it names its threads while
        # one of them ends: a nova-compute has collected its garbage before.
        found[name] = (Size(memory, count) if name == _CONDUCTOR else
                       Size(memory, count, threads.read(process)))
    return found


def complaints(warm: Sizes, last: Sizes) -> Iterator[str]:
    """Return a line for each service that has grown too much.

    :param warm: the sizes after a part of the time
    :param last: the sizes in the end
    """
    for name, size in last.items():
        before = warm[name]
        if size.memory > before.memory * _MOST_MEMORY:
            yield (f'{name} has grown from {before.memory} to {size.memory} '
                   'MiB')
        idle, were_idle = (0, 0) if name == _CONDUCTOR else (
            each.kinds[threads.IDLE] for each in (size, before))
        now, then = size.threads - idle, before.threads - were_idle
        if now > then + _MOST_THREADS:
            yield f'{name} has {now} threads and had {then}, without idle ones'
        if idle > _MOST_IDLE:
            yield f'{name} has {idle} idle threads'


def table(warm: Sizes, last: Sizes) -> Iterator[str]:
    """Return lines that show how services have grown, and by which threads.

    :param warm: the sizes after a part of the time
    :param last: the sizes in the end
    """
    for name, size in last.items():
        before = warm[name]
        yield (f'{name}: {before.memory} MiB and {before.threads} threads '
               f'when warm, {size.memory} MiB and {size.threads} threads in '
               'the end')
        if size.threads > before.threads:
            yield from (f'    {line}'
                        for line in threads.news(before.kinds, size.kinds))
