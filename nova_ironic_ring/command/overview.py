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

"""What the services are, and what each has."""

import dataclasses

from nova_ironic_ring.command import snapshot
from nova_ironic_ring.core import membership
from nova_ironic_ring.core import model

_State = membership.State


@dataclasses.dataclass
class Line:
    """A service.

    :ivar cell: the name of its cell
    :ivar ring: the ring that it is in
    :ivar host: its name
    :ivar state: what it is to that ring, and why
    :ivar owned: nodes recorded as its own
    :ivar desired: nodes that the ring maps to it
    :ivar to_hand_over: free nodes among its own that are for another
    :ivar to_fail_over: instances that belong to it while it is down or gone
    :ivar instances: instances that belong to it
    """

    cell: str
    ring: str
    host: str
    state: str
    owned: int = 0
    desired: int = 0
    to_hand_over: int = 0
    to_fail_over: int = 0
    instances: int = 0


def lines(seen: snapshot.Snapshot) -> list[Line]:
    """Put together what each service is and has.

    :param seen: what was read
    :returns: ring by ring; a line for each service that may run an ironic
        driver, and one for each other host that a node's record names
    """
    found: dict[str, Line] = {}
    for key in [*seen.keys(), None]:
        for host, service in sorted(seen.hosts.items()):
            if seen.key(host) == key:
                found[host] = Line(
                    service.cell, str(key or f'cell {service.cell}, unknown'),
                    service.record.host, describe(seen, service))

    def line(host: str, cell: str) -> Line:
        return found.setdefault(model.canonical(host), Line(
            cell, f'cell {cell}', host, 'Nova has no record of it'))

    rings = {key: seen.ring(key) for key in seen.keys()}
    desired: dict[str, str] = {}
    for key, current in rings.items():
        for node in seen.served(key):
            if (owner := current.owner(node.uuid)) is not None:
                desired[node.uuid] = owner
                found[owner].desired += 1
    for row in seen.rows.values():
        owner_line = line(row.owner, row.cell)
        owner_line.owned += 1
        recorded = seen.nodes.get(row.node)
        if recorded is not None and recorded.instance is None and desired.get(
                row.node, row.owner) != model.canonical(row.owner):
            owner_line.to_hand_over += 1
    for instance in seen.instances.values():
        if instance.host:
            owner_line = line(instance.host, instance.cell)
            owner_line.instances += 1
            if seen.state(instance.host).is_lost:
                owner_line.to_fail_over += 1
    return [each for each in found.values() if seen.is_meant(each.cell)]


def describe(seen: snapshot.Snapshot, service: snapshot.Service) -> str:
    """Say in words what a service is to its ring.

    :param seen: what was read
    :param service: the service
    """
    record = service.record
    host = model.canonical(record.host)
    state = seen.state(host)
    if state is _State.ABSENT:
        silence = (seen.now - record.last_seen).total_seconds()
        words = (f'down since {record.last_seen:%Y-%m-%d %H:%M:%S} UTC '
                 f'({silence:.0f} s)')
        return f'{words}, disabled' if record.disabled else words
    if state is _State.FORCED_DOWN:
        return f'forced down{", but alive" if seen.lives(host) else ""}'
    if state is _State.DISABLED:
        return 'disabled' + (f': {service.reason}' if service.reason else '')
    without_it = [peer for peer, said in sorted(seen.profiles.items())
                  if said.names and host not in said.names
                  and peer in seen.hosts and seen.key(peer) == seen.key(host)
                  and seen.state(peer) is _State.MEMBER]
    if without_it:
        return f'alive, but not in the peer list of {", ".join(without_it)}'
    if host not in seen.owners:
        return 'alive, but without a node, so in no ring'
    if host not in seen.profiles:
        return "member, with Nova's own driver"
    return 'member'
