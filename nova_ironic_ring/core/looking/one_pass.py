# SPDX-License-Identifier: Apache-2.0

"""What all parts of a pass share, and write to."""

from collections.abc import Callable, Iterable, Iterator, Sequence
import contextlib
import enum
from typing import TypeVar

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.peers import trust
from nova_ironic_ring.core.peers import view
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import settings

_T = TypeVar('_T')
# Seconds after which conductor has no request any more that it got.
_LONGEST = 3600.0


class UnansweredError(Exception):
    """Nova or Ironic did not answer: the pass has ended.

    The cause says why.

    :ivar memory: what is to be remembered
    :ivar happened: the events for the log, until then
    :ivar before: what was remembered when it began
    """

    def __init__(self, memory: observation.Memory,
                 happened: Sequence[events.Event],
                 before: observation.Memory) -> None:
        super().__init__()
        self.memory = memory
        self.happened = happened
        self.before = before


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
    :ivar said: what this service's member record says; None if it has none,
        or if that was not read
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
        self.said: model.Member | None = None

    @property
    def view(self) -> view.View:
        """What this service knows of all services."""
        return self.memory.view

    @contextlib.contextmanager
    def asking(self, port: Port | None = None) -> Iterator[None]:
        """End the pass if Nova or Ironic does not answer.

        The memory is then as it was before the pass. If Nova does not answer,
        heartbeats may have been missed; if Ironic does not, they have not.

        :param port: which of the two is asked; None for all of the pass, of
            which what has happened is told whatever fails
        :raises UnansweredError: if it did not answer
        """
        before = self.memory.copied()
        try:
            yield
        except UnansweredError:
            raise
        except Exception as error:
            self.memory.restore(before)
            if port is Port.NOVA:
                self.memory.fail(self.world.process.now())
            else:
                self.memory.end_unanswered()
            raise UnansweredError(
                self.memory, self.happened, self.before) from error

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
    def is_valid(self) -> bool:
        """Whether what is known of the others holds, so that one may write.

        It is a lease: it ends a while after the services were read, and as
        soon as this service's own heartbeat is late for as long.
        """
        return not self.is_late and (
            self.world.process.now() - self.services_read_at
            <= trust.lease(self.current))

    @property
    def is_late(self) -> bool:
        """Whether heartbeats of this service have been late since the look."""
        return self.view.trust is trust.Trust.BLACKOUT or (
            self.world.process.longest_gap(self.memory.watch.at)
            > trust.lease(self.current))

    def while_lost(self, wanted: Iterable[_T],
                   host_of: Callable[[_T], str | None]) -> Iterator[_T]:
        """Go through what is to be taken over from lost services.

        It leaves out what is of a service that was found to be back since that
        was decided.

        :param wanted: what is to be taken over
        :param host_of: returns the service that has one of them; None if it
            need not be lost
        :returns: as :meth:`while_current`
        """
        for each in self.while_current(wanted):
            host = host_of(each)
            if host is None or self.view.is_lost(host):
                yield each

    def while_current(self, wanted: Iterable[_T]) -> Iterator[_T]:
        """Go through what is to be taken over while the last look holds.

        Nova, or this process, may stand still at any of them, and a service
        that was dead may be back by then. The next look decides on the rest.

        :param wanted: what is to be taken over
        :returns: the same, until this service is about to end, or its view of
            the others is not valid any more
        """
        for each in wanted:
            if self.world.process.is_ending() or not self.is_valid:
                return
            yield each

    def take(self, taken: model.Takeover, source: str | None = None,
             node: str | None = None) -> bool:
        """Make an instance this service's.

        If Nova does not answer, nothing is concluded: the next pass, or look
        between two, sees what has come of it (:meth:`see_what_was_taken`).

        :param taken: the instance, and the task that it must have
        :param source: the UUID of the node, or the name of the pool, that Nova
            has it on, if it is to change that too
        :param node: the UUID of the node that Ironic has it on, if it is taken
            into a pool
        :returns: whether it has become this service's now
        :raises Exception: if Nova does not answer
        """
        nova, tried, uuid = self.world.nova, self.memory.tried, taken.instance
        expected = ports.Expected(
            taken.host, source or taken.node, taken.task)
        was_tried = uuid in tried
        # Before the write: nothing can be noted after one without an answer.
        each = tried[uuid] = observation.Tried(
            taken, node or taken.node, self.world.process.now())
        is_done = (nova.set_instance_host(uuid, expected) if source is None
                   else nova.place_instance(uuid, expected, taken.node))
        if is_done:
            self.taken.append(taken)
            # Unless a look has told it already, which runs at the same time.
            if tried.pop(uuid, None) is not None:
                self._tell(each)
        elif not was_tried and tried.get(uuid) is each:
            # Otherwise the first of the two may have succeeded.
            tried.pop(uuid, None)
        return is_done

    def see_what_was_taken(self) -> None:
        """See what has come of takeovers that Nova has not answered.

        What is still with its former service is looked at again: conductor may
        have got the request, and do it yet.
        """
        tried = self.memory.tried
        # A pass, or a look, may try others meanwhile.
        asked = dict(tried)
        if not asked:
            return
        try:
            found = self.world.nova.instances(sorted(asked))
        except Exception:
            # The pass asks Nova more, and tells what fails.
            return
        now = self.world.process.now()
        for uuid, each in asked.items():
            instance = found.get(uuid)
            is_taken = instance and (instance.host_name, instance.node) == (
                self.current.me, each.taken.node)
            if not (is_taken or instance is None
                    or instance.host != each.taken.host
                    or now - each.at >= _LONGEST):
                continue
            # A pass and a look may see it at the same time.
            if tried.get(uuid) is each and (
                    tried.pop(uuid, None) is not None) and is_taken:
                self.taken.append(each.taken)
                self._tell(each)

    def _tell(self, each: observation.Tried) -> None:
        """Tell that an instance has become this service's."""
        taken = each.taken
        self.happened.append(events.InstanceTaken(
            each.node, taken.instance, taken.host, taken.is_dead))
        self.world.process.took(taken)
