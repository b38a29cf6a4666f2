# SPDX-License-Identifier: Apache-2.0

"""What a service says of itself at the end of a pass, in its member record.

The peers' view of it is in :mod:`nova_ironic_ring.core.looking.look`.
"""

import dataclasses
import datetime

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.values import member
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import ports

# A clock that was so far ahead was wrong.
_FAR = datetime.timedelta(hours=1)


@dataclasses.dataclass(frozen=True)
class Work:
    """What this service says in its member record.

    :ivar said: what it says; None before the first pass
    :ivar is_good: whether this pass is a good one
    :ivar is_recorded: whether there is a record, and a provider of it; if not,
        Nova's tracker is to make them
    """

    said: ports.Saying | None = None
    is_good: bool = False
    is_recorded: bool = False

    @property
    def to_record(self) -> ports.Saying | None:
        """What Nova's tracker is to make the record of, if there is none."""
        return None if self.is_recorded else self.said

    def renewed(self, now: datetime.datetime) -> 'Work':
        """Return what to say while a good pass takes long.

        :param now: the time of the wall clock, with time zone
        """
        assert self.said is not None
        last = self.said.last_pass
        return dataclasses.replace(self, said=dataclasses.replace(
            self.said, last_pass=dataclasses.replace(
                last, at=_next(last.at, now))))


def say(this: one_pass.Pass, has_pools: bool = False) -> Work:
    """Write the member record of this service.

    A pass is a good one if it has trusted what it saw of the others, and if
    Placement answers: otherwise Nova's tracker updates no node. A good pass
    acknowledges the ring by which it went: others may take what that ring
    gives to them.

    :param this: the pass
    :param has_pools: whether its compute nodes are pools
    """
    memory = this.memory
    own, is_trusted = memory.own_work, memory.view.is_trusted
    has_provider = None
    with this.going_on(events.LastPassNotSaid):
        has_provider = this.world.placement.has_provider(
            member.uuid_of(this.current.me))
    is_good = is_trusted and has_provider is not None
    shown = this.said.last_pass if this.said else None
    at = shown.at if shown else None
    has_moved = at is not None and at != own.shown
    said = ports.Saying(this.current, model.LastPass(
        memory.work_watch.cycle, _next(
            at, this.world.process.wall_time()) if is_good else at),
        memory.held, _ring(this) if is_good else None, has_pools,
        memory.agreement.lasting)
    with this.going_on(events.LastPassNotSaid):
        this.world.nova.say_member(said)
    memory.own_work = observation.OwnWork(
        own.is_known, at, is_good, is_good and has_moved,
        own.is_said and not has_moved)
    return Work(said, is_good,
                this.said is not None and has_provider is not False)


def acknowledge(this: one_pass.Pass) -> ports.Saying | None:
    """Say between two passes that the ring has changed.

    So its peers need not wait for the next pass. A service whose last pass was
    not good acknowledges no ring, and says nothing.

    :param this: the look, in which the record was read
    :returns: what the record says now; None if nothing was written
    """
    said, memory, ring = this.said, this.memory, _ring(this)
    if said is None or said.ring in (None, ring) or (
            said.last_pass is None or not memory.view.may_take):
        return None
    found = ports.Saying(this.current, said.last_pass, memory.held, ring,
                         said.has_pools, memory.agreement.lasting)
    with this.going_on(events.LastPassNotSaid):
        this.world.nova.say_member(found)
    return found


def _ring(this: one_pass.Pass) -> str:
    """Return the ring that a good pass acknowledges.

    One that is no member lets go of all, however the others divide that.
    """
    known, current = this.view, this.current
    return (known.ring.fingerprint(current.scope)
            if current.me in known.members else model.EVERY_RING)


def _next(last: datetime.datetime | None, now: datetime.datetime
          ) -> datetime.datetime:
    """Return the time of a good pass, which does not go back.

    But if a clock was far ahead, nobody could tell how old the last one is.
    """
    now = now.replace(microsecond=0)
    return now if last is None or last - now > _FAR else max(
        now, last + datetime.timedelta(seconds=1))
