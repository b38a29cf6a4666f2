# SPDX-License-Identifier: Apache-2.0

"""The decision tables: what a service does with a node, and why.

Each table is read from top to bottom, and the first rule that fits decides.
"""

import dataclasses
import enum

from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import trust
from nova_ironic_ring.core.values import model

Trust = trust.Trust
_FULL, _STARTING = Trust.FULL, Trust.STARTING


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
    #: It holds an instance that a dead service has in a pool: Nova needs a
    #: record of the node to have the instance on.
    RECORD_FIRST = (
        'with an instance from a pool of a dead service, and recorded first')
    #: It is free, and this service is both its owner and the desired one.
    KEEP = 'free and for this service'
    #: It is free, and its desired owner may take it from this service.
    OFFER = 'free and offered to another service'
    #: It is free, for this service, and not recorded yet.
    CREATE = 'free and new'
    #: Its owner lets this service take it.
    TAKE_OFFERED = 'free and taken with consent of its owner'
    #: Its owner is absent, forced down, gone, or limited to other nodes than
    #: this one.
    TAKE_ABANDONED = (
        'free and taken because its owner is absent, down, gone or limited to '
        'other nodes')
    #: Its owner is alive, and runs Nova's own driver, so that this service has
    #: waited for the handover timeout; or its passes fail.
    TAKE_SILENT = 'free and taken because its owner does not answer'
    #: The scheduler has sent a build for it here, and the resource tracker
    #: does not have it.
    TAKE_FOR_BUILD = 'free and taken for a build that was sent here'
    #: It is free, for this service, and its owner has not let go of it yet.
    WAIT = 'free, for this service, and waited for'
    #: It holds an instance, but none that this service knows as its own.
    LEAVE_INSTANCE = 'with an instance of another service'
    #: It is free and another member is its desired owner.
    LEAVE = 'free and for another service'

    # Asked of every node in every pass: plain attributes, set below.
    #: Whether the node is reported to Nova as this service's.
    lists: bool
    #: Whether this service takes a free node by it.
    takes: bool
    #: Whether it takes a free node without its owner's consent.
    forces: bool
    #: Whether this service takes an instance by it.
    takes_instance: bool
    #: Whether another service may take the node.
    offers: bool
    #: Whether it stays the same over time as long as no service dies.
    rests: bool


for _each in Decision:
    _each.forces = _each in (
        Decision.TAKE_ABANDONED, Decision.TAKE_SILENT)
    _each.takes = _each.forces or _each in (
        Decision.CREATE, Decision.TAKE_OFFERED, Decision.TAKE_FOR_BUILD)
    _each.takes_instance = _each in (
        Decision.FAIL_OVER, Decision.TAKE_INSTANCE)
    _each.offers = _each in (Decision.OFFER, Decision.OFFER_INSTANCE)
    _each.rests = _each in (
        Decision.KEEP_INSTANCE, Decision.KEEP, Decision.LEAVE_INSTANCE,
        Decision.LEAVE)
    _each.lists = _each.takes or _each.takes_instance or _each.offers or (
        _each in (Decision.KEEP_INSTANCE, Decision.RECORD_FIRST,
                  Decision.KEEP))


@dataclasses.dataclass(frozen=True, eq=False)
class Verdict:
    """A decision and its reason: an entry of a table, created once.

    :ivar decision: the decision
    :ivar why: the reason, as the end of the sentence "the node is ..."
    """

    decision: Decision
    why: str


def _verdict(decision: Decision, why: str | None = None) -> Verdict:
    return Verdict(decision, why or decision.value)


_KEEP = _verdict(Decision.KEEP)
_OFFER = _verdict(Decision.OFFER)
_LEAVE = _verdict(Decision.LEAVE)
_LEAVE_NARROWER = _verdict(
    Decision.LEAVE, 'free and for live services that are limited to some of '
    'the nodes of this one')
_CREATE = _verdict(Decision.CREATE)
_TAKE_OFFERED = _verdict(Decision.TAKE_OFFERED)
_TAKE_ABANDONED = _verdict(Decision.TAKE_ABANDONED)
_TAKE_SILENT = _verdict(Decision.TAKE_SILENT)
_TAKE_NOT_WORKING = _verdict(
    Decision.TAKE_SILENT, 'free and taken because the passes of its owner '
    'fail')
_WAIT = _verdict(Decision.WAIT)
_WAIT_STARTING = _verdict(
    Decision.WAIT, 'free and for this service, which has only started')
_WAIT_ENDING = _verdict(
    Decision.WAIT, 'free and for this service, which is about to end')
_WAIT_TRUST = _verdict(
    Decision.WAIT, 'free, for this service, and waited for while it is not '
    'known who is alive')
_WAIT_RING = _verdict(
    Decision.WAIT, 'free, for this service, and waited for until its owner '
    'acknowledges the same ring')
_WAIT_NEWCOMER = _verdict(
    Decision.WAIT, 'free and for this service, which its peers do not know '
    'yet')

_TAKE_FOR_BUILD = _verdict(Decision.TAKE_FOR_BUILD)

_KEEP_INSTANCE = _verdict(Decision.KEEP_INSTANCE)
_OFFER_INSTANCE = _verdict(Decision.OFFER_INSTANCE)
_TAKE_INSTANCE = _verdict(Decision.TAKE_INSTANCE)
_FAIL_OVER = _verdict(Decision.FAIL_OVER)
_RECORD_FIRST = _verdict(Decision.RECORD_FIRST)
_LEAVE_INSTANCE = _verdict(Decision.LEAVE_INSTANCE)
_LEAVE_ELSEWHERE = _verdict(
    Decision.LEAVE_INSTANCE, 'with an instance that Nova does not have on '
    'this node')
_LEAVE_TRUST = _verdict(
    Decision.LEAVE_INSTANCE, 'with an instance of another service, and left '
    'alone while it is not known who is alive')
_LEAVE_ENDING = _verdict(
    Decision.LEAVE_INSTANCE, 'with an instance of another service, and left '
    'alone by this one, which is about to end')
_LEAVE_NEWCOMER = _verdict(
    Decision.LEAVE_INSTANCE, 'with an instance of another service, and left '
    'alone by this one, which its peers do not know yet')
_LEAVE_LOST = _verdict(
    Decision.LEAVE_INSTANCE, 'with an instance that could not be taken '
    'over in this pass')


@dataclasses.dataclass(frozen=True, slots=True)
class Free:
    """All that the decision on a node without an instance depends on.

    :ivar desired: canonical name of the desired owner; None without members
    :ivar row: the node's row; None if there is none
    :ivar owner: what the row's owner is to this service's ring
    :ivar trust: how far this service trusts what it sees of the others
    :ivar lets: whether the owner acknowledges the ring of this service; None
        if it has no member record, as with Nova's own driver
    :ivar is_overdue: whether the handover timeout has passed
    :ivar is_ending: whether this service is about to end
    :ivar is_narrowed: whether services divide the node which are limited to
        some of this one's
    """

    desired: str | None
    row: model.Row | None = None
    owner: membership.State = membership.State.GONE
    trust: Trust = _FULL
    lets: bool | None = None
    is_overdue: bool = False
    is_ending: bool = False
    is_narrowed: bool = False


def decide(me: str, node: Free) -> Verdict:
    """Decide on a free node by consent.

    :param me: the canonical name of this service
    :param node: the node's circumstances
    """
    if node.row is not None and node.row.owner_name == me:
        return _KEEP if node.desired in (me, None) else _OFFER
    if node.desired != me:
        return _LEAVE
    if node.is_narrowed:
        return _LEAVE_NARROWER
    if node.trust is _STARTING:
        return _WAIT_STARTING
    if node.is_ending:
        return _WAIT_ENDING
    if node.row is None:
        return _CREATE
    if node.lets:
        return _TAKE_OFFERED
    if node.trust is not _FULL:
        return _WAIT_TRUST
    if node.owner is membership.State.NOT_WORKING:
        return _TAKE_NOT_WORKING
    if node.owner.is_lost:
        return _TAKE_ABANDONED
    if node.lets is None:
        return _TAKE_SILENT if node.is_overdue else _WAIT
    if not node.owner.gives:
        return _TAKE_ABANDONED
    # It may be building on its nodes, and lets go of them when it sees the
    # same ring. If it never does, they stay.
    return _WAIT_RING


def decide_at_once(me: str, desired: str | None) -> Verdict:
    """Decide on a free node by the rule of Nova's driver: the ring alone.

    :param me: the canonical name of this service
    :param desired: canonical name of the desired owner; None without members
    """
    return _KEEP if desired in (me, None) else _LEAVE


@dataclasses.dataclass(frozen=True, slots=True)
class Occupied:
    """All that the decision on a node with an instance depends on.

    :ivar desired: canonical name of the node's desired owner; None without
        members
    :ivar is_mine: whether the instance belongs to this service
    :ivar host: canonical name of the service that the instance belongs to, as
        far as this one knows
    :ivar row: the node's row, as far as this service knows
    :ivar is_dead: whether that service is dead, and its instances may be
        taken over
    :ivar may_follow: whether the instance goes with the ring, once it is idle:
        the configuration of its service lets it, and if that is not this one,
        it acknowledges the ring of this one
    :ivar is_elsewhere: whether Nova has the instance on another node, or its
        service runs another driver. Ironic's word alone is not enough:
        whoever owns a node there may write any instance into it
    :ivar trust: how far this service trusts what it sees of the others
    :ivar is_ending: whether this service is about to end
    """

    desired: str | None
    is_mine: bool
    host: str | None = None
    row: model.Row | None = None
    is_dead: bool = False
    may_follow: bool = False
    is_elsewhere: bool = False
    trust: Trust = _FULL
    is_ending: bool = False


def decide_on_instance(me: str, node: Occupied) -> Verdict:
    """Decide on a node with an instance.

    :param me: the canonical name of this service
    :param node: the node's circumstances
    """
    if node.is_mine:
        return _OFFER_INSTANCE if _leaves(me, node) else _KEEP_INSTANCE
    if node.desired != me or node.host is None:
        return _LEAVE_INSTANCE
    if node.is_elsewhere:
        return _LEAVE_ELSEWHERE
    if node.trust is not _FULL:
        return _LEAVE_TRUST
    if node.is_ending:
        return _LEAVE_ENDING
    if node.is_dead:
        return _FAIL_OVER
    return _TAKE_INSTANCE if node.may_follow else _LEAVE_INSTANCE


def _leaves(me: str, node: Occupied) -> bool:
    """Return whether an instance of this service goes with the ring."""
    return (node.may_follow and node.desired not in (me, None)
            and node.trust is _FULL
            and node.row is not None and node.row.owner_name == me)


def hold_back(verdict: Verdict) -> Verdict:
    """Return what a newcomer does with a node.

    :param verdict: what the tables say
    """
    if verdict.decision.takes:
        return _WAIT_NEWCOMER
    if verdict.decision.takes_instance:
        return _LEAVE_NEWCOMER
    return verdict


def take_for_build() -> Verdict:
    """Return the verdict on a node for which a build was sent here."""
    return _TAKE_FOR_BUILD


def wait() -> Verdict:
    """Return the verdict on a node that could not be taken after all."""
    return _WAIT


def record_first() -> Verdict:
    """Return the verdict on a node before its instance leaves a pool."""
    return _RECORD_FIRST


def not_taken() -> Verdict:
    """Return the verdict on an instance that could not be taken over."""
    return _LEAVE_LOST
