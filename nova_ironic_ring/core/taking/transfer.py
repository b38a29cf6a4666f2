# SPDX-License-Identifier: Apache-2.0

"""The transfer of an instance into a place: a pool, or a node's record.

The steps, in this order, and the state after each if the service dies:

1. The place gets room for one more allocation. Its service writes the
   inventory again in its next pass.
2. The allocation is moved. If several services move the same allocation at the
   same time, Placement lets one do so, and that one continues. The service
   that has the place finishes the transfer, or gives the allocation back; if
   that service is dead, the next taker moves the allocation on.
3. Host, node and compute node of the instance are changed together. Nothing
   is left to do.

Placement can write the first two steps at once, by a reshape. Nova's client
has only one public call for that, which the resource tracker uses and which
needs all inventories and allocations of a tree: others may change these
meanwhile.
"""

from collections.abc import Collection
import dataclasses
import enum

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import ports


class Outcome(enum.Enum):
    """The result of a transfer."""

    #: The instance is in its place.
    DONE = enum.auto()
    #: The allocation is elsewhere now, and nothing was changed.
    NOT_MOVED = enum.auto()
    #: The allocation was moved, and the instance has changed meanwhile.
    LOST = enum.auto()


@dataclasses.dataclass(frozen=True)
class Transfer:
    """An instance, and where it is to be.

    :ivar instance: its UUID
    :ivar expected: what was read of it, and must still be true
    :ivar sources: UUIDs of the providers that may have its allocation
    :ivar place: the name of the pool, or the UUID of the node's record, that
        it is to be in
    :ivar pool: the name of the pool whose class the room is made of, which is
        the one that the instance comes from or comes into; None if room was
        made for many at once
    """

    instance: str
    expected: model.Instance
    sources: Collection[str]
    place: str
    pool: str | None = None


def transfer(nova: ports.Nova, placement: ports.Placement, wanted: Transfer
             ) -> Outcome:
    """Move the allocation of an instance, and the instance after it.

    :param nova: the port, in the name of the service that is to have it
    :param placement: the port
    :param wanted: the transfer
    """
    if not move(placement, wanted):
        return Outcome.NOT_MOVED
    before = wanted.expected
    if before.node == wanted.place:
        # An allocation alone was left behind.
        return Outcome.DONE
    is_placed = nova.place_instance(wanted.instance, ports.Expected(
        str(before.host), str(before.node), before.task), wanted.place)
    return Outcome.DONE if is_placed else Outcome.LOST


def make(this: one_pass.Pass, wanted: Transfer) -> bool:
    """Transfer one of this service's own instances in a pass.

    :param this: the pass
    :param wanted: the transfer
    :returns: whether the instance is in its place
    """
    outcome = transfer(this.world.nova, this.world.placement, wanted)
    if outcome is Outcome.NOT_MOVED:
        _tell(this, wanted)
    return outcome is Outcome.DONE


def take(this: one_pass.Pass, wanted: Transfer, node: str, is_dead: bool
         ) -> bool:
    """Transfer an instance of another service in a pass.

    :param this: the pass
    :param wanted: the transfer
    :param node: the UUID of the node that Ironic has the instance on
    :param is_dead: whether that service is dead; it has consented otherwise
    :returns: whether the instance is in its place, and this service's
    """
    before = wanted.expected
    if move(this.world.placement, wanted):
        return this.take(model.Takeover(
            wanted.place, wanted.instance, str(before.host), before.task,
            is_dead), str(before.node), node)
    _tell(this, wanted)
    return False


def _tell(this: one_pass.Pass, wanted: Transfer) -> None:
    this.happened.append(
        events.AllocationNotMoved(wanted.instance, wanted.place))


def turn_back(placement: ports.Placement, wanted: Transfer) -> bool:
    """Move the allocation back to where Nova has the instance.

    :param placement: the port
    :param wanted: what was to be where; its place is a pool
    :returns: False if the allocation is not there, and not where it was
    """
    return move(placement, dataclasses.replace(
        wanted, sources={pools.provider(wanted.place)},
        place=str(wanted.expected.node), pool=wanted.place))


def move(placement: ports.Placement, wanted: Transfer) -> bool:
    """Move the allocation of an instance, with room for it.

    :param placement: the port
    :param wanted: the transfer
    :returns: False if neither the sources nor the place have it
    """
    place = wanted.place
    if wanted.pool is not None:
        placement.make_room(place, wanted.pool)
    is_moved = placement.move(
        wanted.instance, wanted.sources, pools.provider(place))
    if not pools.is_pool(place):
        # The tracker's client knows the provider as it was before.
        placement.forget_provider(place)
    return is_moved
