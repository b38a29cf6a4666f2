# SPDX-License-Identifier: Apache-2.0

"""Counts the threads of a service by the functions that they run.

Linux does not know the names of Python's threads. A Guru Meditation Report
has the stack of each thread.
"""

import collections
from collections.abc import Iterator
import re

from nova_ironic_ring.lab.running import process as lab_process
from nova_ironic_ring.lab import waiting

#: The name of a thread of a pool that has no work.
IDLE = ('run (futurist/_thread.py) > '
        '_wait_for_work (futurist/_thread.py)')
# Seconds.
_PATIENCE = 30
_POLL = 0.2
_SECTION = re.compile(r'^====\s+Threads\s+====\n=+\n(.*?)^====', re.M | re.S)
_THREAD = re.compile(r'^-+ +Thread #\d+ +-+$', re.M)
_FRAME = re.compile(r'^(\S.*):\d+ in (\S+)$', re.M)
# The files of Python's own library, where nearly all stacks begin and end.
_LIBRARY = re.compile(r'/lib/python[\d.]+/(?!site-packages/|dist-packages/)')


def read(process: lab_process.Process) -> collections.Counter[str]:
    """Ask a service for a report, and count the threads in it.

    :param process: the service
    :returns: how many threads there are of each kind, as :func:`count`; empty
        if the service does not answer
    """
    begin = process.log.stat().st_size
    process.report()

    def said() -> str:
        with open(process.log, 'rb') as log:
            log.seek(begin)
            return log.read().decode(errors='replace')
    waiting.until(lambda: _SECTION.search(said()) is not None, _PATIENCE,
                  _POLL)
    return count(said())


def count(report: str) -> collections.Counter[str]:
    """Count the threads in reports by the first and the last function of each.

    :param report: a text with any number of Guru Meditation Reports
    :returns: how many there are of each kind, such as ``run
        (futurist/_thread.py) > _wait_for_work (futurist/_thread.py)``
    """
    return collections.Counter(
        _name(stack) for section in _SECTION.findall(report)
        for stack in _THREAD.split(section)[1:])


def news(before: collections.Counter[str], now: collections.Counter[str],
         ) -> Iterator[str]:
    """Return a line for each kind of which there are more threads than before.

    :param before: how many there were of each kind
    :param now: how many there are of each kind
    """
    for name, more in (now - before).most_common():
        yield f'{more} more: {name}'


def _name(stack: str) -> str:
    """Name a thread by the first and the last function outside the library."""
    places = [f'{function} ({"/".join(path.split("/")[-2:])})'
              for path, function in _FRAME.findall(stack)
              if not _LIBRARY.search(path)]
    if not places:
        return 'in nothing but the standard library'
    return ' > '.join(dict.fromkeys((places[0], places[-1])))
