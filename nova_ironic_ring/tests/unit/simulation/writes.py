# SPDX-License-Identifier: Apache-2.0

"""What services write: the answer may be lost, and what is taken is handed on.

Both drivers' simulations use it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
import random
import typing

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.world import cloud as clouds


class Unreachable(Exception):
    """A service cannot reach Nova's database, Ironic or Placement."""


class Service(typing.Protocol):
    """A service that writes."""

    name: str
    lives: bool


class Writes:
    """The writes of all services.

    :ivar share: how many of them are done and answer an error, from 0 to 1
    """

    def __init__(self, log: Callable[[str], None], seed: int) -> None:
        """Begin without a write.

        :param log: adds a line to the timeline
        :param seed: what chance comes from
        """
        self.share = 0.0
        self._log = log
        self._random = random.Random(seed)
        #: What was taken and is not recovered, or not recorded, yet.
        self._owed: set[tuple[Service, str, str]] = set()

    def lose(self, share: float) -> None:
        """Have writes be done and answer an error.

        :param share: how many of them, from 0 to 1
        """
        if share != self.share:
            self._log(f'of {share:.0%} of all writes the answer is lost')
            self.share = share

    def answer(self, service: Service, name: str, args: typing.Any = (),
               answer: object = None) -> bool:
        """Let the answer of a call come, unless it is lost.

        :param service: the service that has called
        :param name: the name of the call
        :param args: what it has named
        :param answer: what it is answered
        :returns: whether a write was called, of which some are lost
        :raises Unreachable: if it is lost
        """
        if name not in clouds.WRITES:
            return False
        if answer is True and name in (
                'set_instance_host', 'place_instance') and (
                args[1].host != service.name):
            self._owed |= {(service, args[0], 'recovered'),
                           (service, args[0], 'recorded')}
        if self._random.random() < self.share:
            self._log(f'{service.name}: the answer of {name} is lost')
            raise Unreachable()
        return self.share > 0

    def recovered(self, service: Service, uuid: str) -> None:
        """Note that an instance was handed to the recovery.

        :param service: the service that has taken it
        :param uuid: its UUID
        """
        self._owed.discard((service, uuid, 'recovered'))

    def told(self, service: Service, happened: Iterable[events.Event]) -> None:
        """Note what a service has told, and so recorded.

        :param service: the service
        :param happened: the events
        """
        self._owed -= {(service, each.instance, 'recorded')
                       for each in happened
                       if isinstance(each, events.InstanceTaken)}

    def left(self, instances: Mapping[str, model.Instance]) -> str | None:
        """Say what was taken and never handed on, if anything was.

        :param instances: those that Nova has, by UUID
        """
        return next((
            f'{service.name} has taken {uuid}, which is not {what}'
            for service, uuid, what in self._owed
            if service.lives and uuid in instances
            and instances[uuid].host == service.name), None)
