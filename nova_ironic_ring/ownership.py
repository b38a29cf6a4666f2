# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""What a service does with a node: one decision for each, and its reason."""

import dataclasses
import enum

from nova_ironic_ring import membership


class Decision(enum.Enum):
    """What this service does with a node in this pass."""

    #: It holds an instance of this service.
    KEEP_INSTANCE = 'with an instance of this service'
    #: It holds an instance that its desired owner may take from this service.
    OFFER_INSTANCE = 'with an instance that is offered to another service'
    #: It holds an instance, and the instance's service lets this one take it.
    TAKE_INSTANCE = 'with an instance that is taken with consent'
    #: It holds an instance of a service that is dead.
    FAIL_OVER = 'with an instance that is taken over from a dead service'
    #: It is free, and this service is both its owner and the desired one.
    KEEP = 'free and for this service'
    #: It is free, and its desired owner may take it from this service.
    OFFER = 'free and offered to another service'
    #: It is free and for another service, which has to wait.
    HOLD = 'free, for another service, and not offered yet'
    #: It is free, for this service, and not recorded yet.
    CREATE = 'free and new'
    #: Its owner lets this service take it.
    TAKE_OFFERED = 'free and taken with consent of its owner'
    #: Its owner is down, gone, or in no ring with this service.
    TAKE_ABANDONED = 'free and taken because its owner is down or gone'
    #: Its owner is alive, and has let the handover timeout pass.
    TAKE_SILENT = 'free and taken because its owner does not answer'
    #: The one that a newcomer takes to be seen by its peers.
    TAKE_FIRST = 'free and taken as the first one of a newcomer'
    #: It is free, for this service, and its owner has not let go of it yet.
    WAIT = 'free, for this service, and waited for'
    #: It holds an instance, but none that this service knows as its own.
    LEAVE_INSTANCE = 'with an instance of another service'
    #: It is free and another member is its desired owner.
    LEAVE = 'free and for another service'

    @property
    def lists(self) -> bool:
        """Whether the node is reported to Nova as this service's."""
        return self in _LISTS

    @property
    def takes(self) -> bool:
        """Whether a free node becomes this service's by it."""
        return self in _TAKES

    @property
    def takes_instance(self) -> bool:
        """Whether an instance becomes this service's by it."""
        return self in (Decision.FAIL_OVER, Decision.TAKE_INSTANCE)

    @property
    def offers(self) -> bool:
        """Whether another service may take the node."""
        return self in (Decision.OFFER, Decision.OFFER_INSTANCE)


_TAKES = frozenset({
    Decision.CREATE, Decision.TAKE_OFFERED, Decision.TAKE_ABANDONED,
    Decision.TAKE_SILENT, Decision.TAKE_FIRST})
_LISTS = _TAKES | {
    Decision.KEEP_INSTANCE, Decision.OFFER_INSTANCE, Decision.TAKE_INSTANCE,
    Decision.FAIL_OVER, Decision.KEEP, Decision.OFFER, Decision.HOLD}


class Trust(enum.Enum):
    """How far this service may go by what it sees of the others."""

    #: It has only started, and its peers do not see it as alive yet.
    STARTING = 'starting'
    #: Who looks dead may be alive.
    BLACKOUT = 'blackout'
    FULL = 'full'


@dataclasses.dataclass(frozen=True)
class Row:
    """What Nova's database says of a node.

    :ivar owner: the name of the service that the node is recorded for
    :ivar taker: canonical name of the service that the owner lets take it;
        empty if it says that none may just now; None if it says nothing
    """

    owner: str
    taker: str | None = None


@dataclasses.dataclass(frozen=True)
class Free:
    """All that the decision on a node without an instance hangs on.

    :ivar desired: canonical name of the desired owner; None without members
    :ivar row: its row; None if there is none
    :ivar owner: what the row's owner is to this service's ring
    :ivar trust: how far to go
    :ivar building: whether an instance is being built here for it
    :ivar overdue: whether its owner has let the handover timeout pass
    """

    desired: str | None
    row: Row | None = None
    owner: membership.State = membership.State.GONE
    trust: Trust = Trust.FULL
    building: bool = False
    overdue: bool = False


def decide(me: str, node: Free) -> Decision:
    """Decide on a free node by consent.

    :param me: the canonical name of this service
    :param node: the node's circumstances
    """
    if node.row is not None and membership.canonical(node.row.owner) == me:
        if node.desired in (me, None):
            return Decision.KEEP
        # Without trust, nobody knows whether that one lives to take it.
        if node.building or node.trust is not Trust.FULL:
            return Decision.HOLD
        return Decision.OFFER
    if node.desired != me:
        return Decision.LEAVE
    if node.trust is Trust.STARTING:
        return Decision.WAIT
    if node.row is None:
        return Decision.CREATE
    if node.row.taker == me:
        return Decision.TAKE_OFFERED
    if node.trust is Trust.BLACKOUT:
        return Decision.WAIT
    if not node.owner.gives:
        return Decision.TAKE_ABANDONED
    return Decision.TAKE_SILENT if node.overdue else Decision.WAIT


def decide_at_once(me: str, desired: str | None) -> Decision:
    """Decide on a free node by the stock rule: the ring alone.

    :param me: the canonical name of this service
    :param desired: canonical name of the desired owner; None without members
    """
    return Decision.KEEP if desired in (me, None) else Decision.LEAVE


@dataclasses.dataclass(frozen=True)
class Occupied:
    """All that the decision on a node with an instance hangs on.

    :ivar desired: canonical name of the node's desired owner; None without
        members
    :ivar is_mine: whether the instance belongs to this service
    :ivar host: canonical name of the service that it belongs to, as far as
        this one knows
    :ivar row: the node's row, as far as this service knows
    :ivar is_dead: whether the service that it belongs to is to be given up,
        and its instances may be taken over
    :ivar may_follow: whether it may go with the ring now: the configuration
        lets it, and nothing is being done with it
    :ivar trust: how far to go
    """

    desired: str | None
    is_mine: bool
    host: str | None = None
    row: Row | None = None
    is_dead: bool = False
    may_follow: bool = False
    trust: Trust = Trust.FULL


def decide_on_instance(me: str, node: Occupied) -> Decision:
    """Decide on a node with an instance.

    :param me: the canonical name of this service
    :param node: the node's circumstances
    """
    owner = node.row and membership.canonical(node.row.owner)
    if node.is_mine:
        leaves = node.may_follow and owner == me and (
            node.desired not in (me, None) and node.trust is Trust.FULL)
        return Decision.OFFER_INSTANCE if leaves else Decision.KEEP_INSTANCE
    if node.desired != me or node.trust is not Trust.FULL:
        return Decision.LEAVE_INSTANCE
    if node.is_dead:
        return Decision.FAIL_OVER
    if node.may_follow and node.row and node.row.taker == me and (
            owner == node.host):
        return Decision.TAKE_INSTANCE
    return Decision.LEAVE_INSTANCE
