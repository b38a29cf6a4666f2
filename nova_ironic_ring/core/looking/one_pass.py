# SPDX-License-Identifier: Apache-2.0

"""What all parts of a pass share, and write to."""

from collections.abc import Callable, Iterable, Iterator, Sequence
import contextlib
import enum
from typing import TypeVar

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import settings

_T = TypeVar('_T')


class UnansweredError(Exception):
    """Nova or Ironic did not answer: the pass has ended.

    The cause says why.

    :ivar memory: what is to be remembered
    :ivar happened: the events for the log, until then
    """

    def __init__(self, memory: observation.Memory,
                 happened: Sequence[events.Event]) -> None:
        super().__init__()
        self.memory = memory
        self.happened = happened


class Port(enum.Enum):
    """A port without whose answers a pass cannot go on."""

    NOVA = enum.auto()
    IRONIC = enum.auto()


class Pass:
    """A pass, a look between two passes, or the last look at a node.

    :ivar world: the ports
    :ivar current: this service's settings
    :ivar memory: what is to be remembered
    :ivar before: what was remembered when it began
    :ivar happened: the events for the log
    :ivar taken: the instances that have become this service's
    :ivar services_read_at: when the services were last read, in seconds
    :ivar alive: canonical names of the other services that were not lost when
        all were last read; none if that was not since it began
    """

    def __init__(self, world: ports.Ports, current: settings.Settings,
                 memory: observation.Memory,
                 before: observation.Memory | None = None) -> None:
        """Begin.

        :param world: the ports
        :param current: this service's settings
        :param memory: what this service remembers, which is changed
        :param before: what it remembered before, which is not
        """
        self.world = world
        self.current = current
        self.memory = memory
        self.before = memory if before is None else before
        self.happened: list[events.Event] = []
        self.taken: list[model.Takeover] = []
        self.services_read_at = memory.watch.at
        self.alive: frozenset[str] = frozenset()

    @property
    def standing(self) -> observation.Standing:
        """What this service knows of its peers."""
        return self.memory.standing

    @contextlib.contextmanager
    def asking(self, port: Port) -> Iterator[None]:
        """End the pass if Nova or Ironic does not answer.

        The memory is then as it was before the pass. If Nova does not answer,
        heartbeats may have been missed; if Ironic does not, they have not.

        :param port: which of the two is asked
        :raises UnansweredError: if it did not answer
        """
        before = self.memory.copied()
        try:
            yield
        except Exception as error:
            self.memory.restore(before)
            if port is Port.NOVA:
                self.memory.fail(self.world.process.now())
            else:
                self.memory.end_unanswered()
            raise UnansweredError(self.memory, self.happened) from error

    @contextlib.contextmanager
    def going_on(self, event: Callable[..., events.Event], *what: object
                 ) -> Iterator[None]:
        """Continue with the pass if a port fails, and log it.

        What was written before stays.

        :param event: makes the event from ``what`` and the error
        :param what: what the event names
        """
        try:
            yield
        except Exception as error:
            self.happened.append(event(*what, error))

    @property
    def is_outdated(self) -> bool:
        """Whether a service may have been silent, and back, since the look."""
        return (self.world.process.now() - self.services_read_at
                >= self.current.down_time)

    def while_lost(self, wanted: Iterable[_T], host_of: Callable[[_T], str]
                   ) -> Iterator[_T]:
        """Go through what is to be taken over from lost services.

        It leaves out what is of a service that was found to be back since that
        was decided.

        :param wanted: what is to be taken over
        :param host_of: returns the service that has one of them
        :returns: as :meth:`while_current`
        """
        for each in self.while_current(wanted):
            if model.canonical(host_of(each)) not in self.alive:
                yield each

    def while_current(self, wanted: Iterable[_T]) -> Iterator[_T]:
        """Go through what is to be taken over while the last look holds.

        Nova, or this process, may stand still at any of them, and a service
        that was dead may be back by then. The next look decides on the rest.

        :param wanted: what is to be taken over
        :returns: the same, until this service is about to end, or the last
            look at the services is as old as the silence that makes a service
            absent
        """
        for each in wanted:
            if self.world.process.is_ending() or self.is_outdated:
                return
            yield each

    def take(self, taken: model.Takeover) -> None:
        """Note that an instance has become this service's.

        :param taken: the instance
        """
        self.taken.append(taken)
        self.happened.append(events.InstanceTaken(
            taken.node, taken.instance, taken.host, taken.is_dead))
