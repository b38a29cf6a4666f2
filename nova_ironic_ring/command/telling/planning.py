# SPDX-License-Identifier: Apache-2.0

"""Computes what a change of a ring would move."""

import collections
from collections.abc import Iterable, Iterator, Mapping
import dataclasses
from xml.sax import saxutils

from nova_ironic_ring.command.telling import counting
from nova_ironic_ring.command.telling import prospect
from nova_ironic_ring.command.telling import snapshot
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import rings
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import plural

# The picture of a plan: sizes in pixels.
_WIDTH, _BAR, _GAP, _LEFT, _TOP = 720, 16, 14, 150, 56
_COLOURS = {'nodes': '#4a7ebb', 'instances': '#d9883d'}


@dataclasses.dataclass(frozen=True)
class ServiceShare:
    """The share of a service, before and after a change.

    :ivar host: its name
    :ivar nodes: free nodes that are recorded for it, or count in its pools
    :ivar nodes_after: the same after the change
    :ivar instances: instances that belong to it
    :ivar instances_after: the same after the change
    :ivar listed_after: nodes that it lists in each pass afterwards
    """

    host: str
    nodes: int
    nodes_after: int
    instances: int
    instances_after: int
    listed_after: int = 0


@dataclasses.dataclass(frozen=True)
class ChangePlan:
    """The result of a change.

    :ivar shares: of each service
    :ivar moved_nodes: free nodes that change hands
    :ivar moved_instances: instances that change hands
    :ivar balance: the largest share of all nodes over the mean one
    :ivar balance_after: the same after the change
    :ivar is_settled: whether it ends: the services agree
    """

    shares: list[ServiceShare]
    moved_nodes: int
    moved_instances: int
    balance: float
    balance_after: float
    is_settled: bool = True


def plan(seen: snapshot.Snapshot, key: rings.Key,
         change: prospect.Change = prospect.Change()) -> ChangePlan:
    """Compute what a change of a ring would move.

    All services run their passes in memory, until nothing moves.

    :param seen: what was read
    :param key: the ring
    :param change: the change
    :raises ValueError: if the change cannot be made, or no member would be
        left
    """
    members, after = _members(seen, key, change)
    outcome = prospect.of(seen, key, change).run()
    served = seen.served(key)
    free = {node.uuid for node in served if node.instance is None}
    owners = {**{node: row.owner_name for node, row in seen.rows.items()},
              **{node: count.host
                 for node, count in counting.of(seen).items()}}
    old = {node: owner for node, owner in owners.items() if node in free}
    new = {node: model.canonical(owner)
           for node, owner in outcome.owners.items() if node in free}
    held = {instance.uuid: instance.host_name for node in served
            if (instance := seen.instance_on(node)) and instance.host_name}
    moved = {uuid: model.canonical(host)
             for uuid, host in outcome.hosts.items() if uuid in held}
    nodes, nodes_after, instances, instances_after = (
        collections.Counter(each.values())
        for each in (old, new, held, moved))
    shares = [
        ServiceShare(
            host, nodes[host], nodes_after[host], instances[host],
            instances_after[host], outcome.listed.get(host, 0))
        for host in sorted({*members, *after, *nodes, *nodes_after,
                            *instances, *instances_after})]
    return ChangePlan(
        shares,
        sum(new.get(node) != owner for node, owner in old.items()),
        sum(moved.get(uuid) != host for uuid, host in held.items()),
        balance({share.host: share.nodes + share.instances
                 for share in shares if share.host in members}),
        balance({share.host: share.nodes_after + share.instances_after
                 for share in shares if share.host in after}),
        outcome.is_settled)


def moves(plan: ChangePlan) -> str:
    """Return how much changes hands, without a full stop.

    :param plan: the plan
    """
    return (f'{plural.of(plan.moved_nodes, "free node")} and '
            f'{plural.of(plan.moved_instances, "instance")} change hands')


def _members(seen: snapshot.Snapshot, key: rings.Key,
             change: prospect.Change) -> tuple[frozenset[str], frozenset[str]]:
    """Return the members of a ring now and after a change.

    A service that its peers do not know yet is about to become one.

    :raises ValueError: as :func:`plan`
    """
    now = seen.rings[key].members
    joining, leaving = _names(change.add), (
        _names(change.remove) | _names(change.disable))
    of_ring = {host for host in seen.hosts if seen.key(host) == key}
    coming = joining | {host for host in of_ring if seen.states[host]
                        is membership.State.MEMBER}
    if not coming:
        raise ValueError(f'The ring of {key} has no living member: see '
                         '"nova-ironic-ring show".')
    for host in sorted(joining):
        _see_whether_it_can_join(seen, key, host)
    if joining & leaving:
        raise ValueError(f'"{min(joining & leaving)}" cannot both join and '
                         'leave: name it once.')
    if leaving - of_ring:
        raise ValueError(
            f'"{min(leaving - of_ring)}" is no member of the ring of '
            f'{key}: its members are {", ".join(sorted(now)) or "none"}.')
    after = coming - leaving
    if not after:
        raise ValueError(
            f'Nobody would be left in the ring of {key}: keep one member.')
    return now, after


def _see_whether_it_can_join(seen: snapshot.Snapshot, key: rings.Key,
                             host: str) -> None:
    if host in seen.rings[key].members:
        raise ValueError(
            f'"{host}" is a member of the ring of {key} already.')
    if any(each.record.name == host for each in seen.services):
        # It raises an error for a service with another driver.
        cell = seen.service(host).cell
        if cell != key.cell:
            raise ValueError(
                f'The nova-compute on "{host}" is in cell {cell}: it cannot '
                f'join the ring of {key}.')


def _names(hosts: Iterable[str]) -> frozenset[str]:
    return frozenset(map(model.canonical, hosts))


def balance(shares: Mapping[str, int]) -> float:
    """Compute how evenly nodes are divided.

    :param shares: how many each service has
    :returns: the largest share over the mean one; 1 where all have the same
    """
    total = sum(shares.values())
    return max(shares.values()) * len(shares) / total if total else 1.0


def svg(plan: ChangePlan) -> str:
    """Draw a plan.

    :param plan: the plan
    :returns: an SVG document
    """
    most = max(max(share.nodes + share.instances,
                   share.nodes_after + share.instances_after)
               for share in plan.shares) or 1
    scale = (_WIDTH - _LEFT - 60) / most
    height = _TOP + len(plan.shares) * (2 * _BAR + _GAP) + 10
    return '\n'.join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" '
        f'height="{height}" font-family="sans-serif" font-size="12">',
        '<title>Nodes and instances of each service, before and after'
        '</title>',
        f'<text x="10" y="20">{moves(plan)}; largest share over '
        f'the mean: {plan.balance:.2f}, then {plan.balance_after:.2f}</text>',
        *_legend(),
        *(element for number, share in enumerate(plan.shares)
          for element in _share(share, _TOP + number * (2 * _BAR + _GAP),
                                scale)),
        '</svg>', ''])


def _legend() -> Iterator[str]:
    for number, (what, colour) in enumerate(_COLOURS.items()):
        x = _LEFT + number * 130
        yield (f'<rect x="{x}" y="32" width="12" height="12" '
               f'fill="{colour}"/>')
        name = 'free nodes' if what == 'nodes' else what
        yield f'<text x="{x + 18}" y="42">{name}</text>'


def _share(share: ServiceShare, top: float, scale: float) -> Iterator[str]:
    yield (f'<text x="{_LEFT - 64}" y="{top + _BAR + 4}" text-anchor="end">'
           f'{saxutils.escape(share.host)}</text>')
    for when, y, nodes, instances in (
            ('before', top, share.nodes, share.instances),
            ('after', top + _BAR, share.nodes_after, share.instances_after)):
        yield (f'<text x="{_LEFT - 8}" y="{y + _BAR - 4}" text-anchor="end" '
               f'fill="#666">{when}</text>')
        x = float(_LEFT)
        for count, colour in ((nodes, _COLOURS['nodes']),
                              (instances, _COLOURS['instances'])):
            yield (f'<rect x="{x:.1f}" y="{y + 1}" width="{count * scale:.1f}"'
                   f' height="{_BAR - 2}" fill="{colour}"/>')
            x += count * scale
        yield (f'<text x="{x + 6:.1f}" y="{y + _BAR - 4}">'
               f'{nodes + instances}</text>')
