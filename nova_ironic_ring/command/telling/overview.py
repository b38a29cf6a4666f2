# SPDX-License-Identifier: Apache-2.0

"""The state of the services, and what each owns."""

import dataclasses
import enum

from nova_ironic_ring.command.telling import counting
from nova_ironic_ring.command.telling import snapshot
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.values import model

_State = membership.State


class StateCode(enum.Enum):
    """The state of a service in its ring, for programs: these names stay."""

    MEMBER = enum.auto()
    #: It runs Nova's own driver, or an old release of this one.
    MEMBER_THAT_SAYS_NOTHING = enum.auto()
    #: It lives, and has neither a node nor a member record, so its peers do
    #: not know it.
    WITHOUT_NODE = enum.auto()
    #: It lives, and members have a peer list that does not name it.
    NOT_IN_PEER_LIST = enum.auto()
    DISABLED = enum.auto()
    #: It lives, and its passes have failed for long.
    NOT_WORKING = enum.auto()
    #: Nova's API shows it as down; it may be disabled as well.
    DOWN = enum.auto()
    #: An operator has forced it down; it may be alive.
    FORCED_DOWN = enum.auto()
    #: Nova has no record of it.
    GONE = enum.auto()


@dataclasses.dataclass(frozen=True)
class Description:
    """The state of a service in its ring, with words for it.

    :ivar code: for programs
    :ivar words: the same and more, for people
    """

    code: StateCode
    words: str


@dataclasses.dataclass
class ServiceLine:
    """A service.

    :ivar cell: the name of its cell
    :ivar ring: the ring that it is in
    :ivar host: its name
    :ivar is_what: what it is to that ring
    :ivar owned: nodes recorded as its own, or in its pools
    :ivar desired: nodes that the ring maps to it
    :ivar to_hand_over: free nodes among its own that are for another
    :ivar to_fail_over: instances that belong to it while it is down or gone
    :ivar instances: instances that belong to it
    """

    cell: str
    ring: str
    host: str
    is_what: Description
    owned: int = 0
    desired: int = 0
    to_hand_over: int = 0
    to_fail_over: int = 0
    instances: int = 0


def lines(seen: snapshot.Snapshot) -> list[ServiceLine]:
    """Return the state and the nodes of each service.

    :param seen: what was read
    :returns: ring by ring; a line for each service that may run an ironic
        driver, and one for each other host that a node's record names
    """
    found: dict[str, ServiceLine] = {}
    for key in [*seen.keys(), None]:
        for host, service in sorted(seen.hosts.items()):
            if seen.key(host) == key:
                found[host] = ServiceLine(
                    service.cell, str(key or f'cell {service.cell}, unknown'),
                    service.record.host, describe(seen, service))

    def line(host: str, cell: str) -> ServiceLine:
        return found.setdefault(model.canonical(host), ServiceLine(
            cell, f'cell {cell}', host,
            Description(StateCode.GONE, 'Nova has no record of it')))

    desired = seen.desired.owners()
    for owner in desired.values():
        found[owner].desired += 1
    for row in seen.rows.values():
        owner_line = line(row.owner, row.cell)
        owner_line.owned += 1
        recorded, owner = seen.nodes.get(row.node), model.canonical(row.owner)
        if recorded is not None and recorded.instance is None and desired.get(
                row.node, owner) != owner:
            owner_line.to_hand_over += 1
    for row in seen.pools.values():
        line(row.owner, row.cell)
    for count in counting.of(seen).values():
        line(count.host, count.cell).owned += 1
    for instance in seen.instances.values():
        if instance.host:
            owner_line = line(instance.host, instance.cell)
            owner_line.instances += 1
            if seen.state(instance.host).is_lost:
                owner_line.to_fail_over += 1
    return [each for each in found.values() if seen.is_meant(each.cell)]


def descriptions(seen: snapshot.Snapshot) -> dict[str, Description]:
    """Return the states of all services in their rings.

    :param seen: what was read
    :returns: by the canonical name of the service
    """
    return {host: describe(seen, service)
            for host, service in seen.hosts.items()}


def describe(seen: snapshot.Snapshot, service: snapshot.Service
             ) -> Description:
    """Return the state of a service in its ring.

    :param seen: what was read
    :param service: the service
    """
    host = model.canonical(service.record.host)
    match seen.state(host):
        case _State.ABSENT:
            return Description(StateCode.DOWN, _down(seen, service.record))
        case _State.FORCED_DOWN:
            return Description(StateCode.FORCED_DOWN, 'forced down' + (
                ', but alive' if seen.lives(host) else ''))
        case _State.NOT_WORKING as state:
            at = seen.last_pass(host)
            return Description(StateCode.NOT_WORKING, state.value + (
                f' since {at:%Y-%m-%d %H:%M:%S} UTC' if at else ''))
        case _State.DISABLED:
            return Description(StateCode.DISABLED, 'disabled' + (
                f': {service.reason}' if service.reason else ''))
    without_it = [peer for peer, said in sorted(seen.profiles.items())
                  if said.names and host not in said.names
                  and peer in seen.hosts and seen.key(peer) == seen.key(host)
                  and seen.state(peer) is _State.MEMBER]
    if without_it:
        return Description(
            StateCode.NOT_IN_PEER_LIST,
            f'alive, but not in the peer list of {", ".join(without_it)}')
    if host not in seen.known:
        return Description(StateCode.WITHOUT_NODE,
                           'alive, but without a node, so in no ring')
    if host not in seen.profiles:
        return Description(StateCode.MEMBER_THAT_SAYS_NOTHING,
                           "member, with Nova's own driver")
    return Description(StateCode.MEMBER, 'member')


def _down(seen: snapshot.Snapshot, record: model.Service) -> str:
    silence = (seen.now - record.last_seen).total_seconds()
    words = (f'down since {record.last_seen:%Y-%m-%d %H:%M:%S} UTC '
             f'({silence:.0f} s)')
    return f'{words}, disabled' if record.disabled else words
