# SPDX-License-Identifier: Apache-2.0

"""Writes the events of a pass into the log, one line for each event.

It counts the events as well, because all of them pass through here.
"""

import collections
from collections.abc import Iterable

from oslo_log import log as logging

from nova_ironic_ring.compute.recording import counters
from nova_ironic_ring.core.deciding import events

LOG = logging.getLogger(__name__)

_LEVELS = {level: getattr(logging, level.name) for level in events.Level}

# More moves of a kind in a pass become one line: a failover moves hundreds of
# nodes, and so many lines would hide all others.
_MOST = 20


def write(happened: Iterable[events.Event], seconds: float = 0.0) -> None:
    """Write events, and count them.

    :param happened: the events, in their order
    :param seconds: how long the pass took
    """
    happened = list(happened)
    counters.COUNTERS.count(happened)
    kinds = collections.defaultdict(list)
    for event in happened:
        if isinstance(event, events.Move):
            kinds[type(event), event.kind()].append(event)
    many = [moves for moves in kinds.values() if len(moves) > _MOST]
    in_many = {id(event) for moves in many for event in moves}
    for event in happened:
        text = event.text()
        if isinstance(event, events.PassDone):
            text += f' This took {seconds:.2f} s.'
        _write(events.Level.DEBUG if id(event) in in_many else event.level(),
               text)
    for moves in many:
        _write(moves[0].level(), moves[0].text_of_many(len(moves)))


def _write(level: events.Level, text: str) -> None:
    if text:
        LOG.log(_LEVELS[level], text)
