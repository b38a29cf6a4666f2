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

"""Says what becomes of one node, in words."""

from collections.abc import Mapping, Sequence

from nova_ironic_ring.command import overview
from nova_ironic_ring.command import prospect
from nova_ironic_ring.command import snapshot
from nova_ironic_ring.core import decisions
from nova_ironic_ring.core import membership
from nova_ironic_ring.core import model
from nova_ironic_ring.core import planner

_Decision = decisions.Decision

# With these a service has nothing to do with a node.
_LEAVES = (_Decision.LEAVE, _Decision.LEAVE_INSTANCE)


def explain(seen: snapshot.Snapshot, node: snapshot.Node) -> dict[str, str]:
    """Say whose a node is, whose it should be, and what is done about it.

    :param seen: what was read
    :param node: the node
    :returns: what there is to say, by its title
    """
    row = seen.rows.get(node.uuid)
    key = next((key for key in seen.keys() if node in seen.served(key)), None)
    current = seen.ring(key) if key is not None else None
    members = list(current.successors(node.uuid)) if (
        current is not None and current.members) else []
    instance = seen.instance_on(node)
    decision, reason = _decide(
        seen, node, key, members[0] if members else None)
    return {
        'Node': node.uuid,
        'Name': node.name or '',
        'Conductor group': node.group,
        'Shard': node.shard or '',
        'Ring': str(key) if key is not None else 'none serves it',
        'Owner': row.owner if row else '',
        'Owner is': _describe(seen, row.owner) if row else '',
        'Desired owner': members[0] if members else '',
        'Successors': ', '.join(members[1:]),
        'Instance': (f'{instance.uuid} ({instance.name})' if instance
                     else node.instance or ''),
        'Instance belongs to': instance.host or '' if instance else '',
        'Offered to': row.taker or '' if row else '',
        'Decision': decision,
        'Reason': reason,
    }


def _describe(seen: snapshot.Snapshot, host: str) -> str:
    service = seen.hosts.get(model.canonical(host))
    return ('not in Nova' if service is None
            else overview.describe(seen, service))


def _decide(seen: snapshot.Snapshot, node: snapshot.Node,
            key: snapshot.Key | None, desired: str | None
            ) -> tuple[str, str]:
    """Return the decision of the service that acts, and why."""
    row, instance = seen.rows.get(node.uuid), seen.instance_on(node)
    # A node that no ring serves may be with a service all the same.
    place = key or next((each for each in seen.keys() if each.cell == (
        row.cell if row else instance.cell if instance else None)), None)
    steps = prospect.of(seen, place).steps(node.uuid) if place else {}
    holders = [model.canonical(name) for name in (
        instance.host if instance else None, row.owner if row else None)
        if name is not None]
    host = _acting(steps, holders, desired)
    if host is None:
        return 'none', ('no member lives that could decide' if not desired
                        else 'no service that could decide lists the node')
    step = steps[host]
    advice = _advise(seen, node, host, step)
    reason = f'the node is {step.why}{f"; {advice}" if advice else ""}'
    # Nobody has to act where it is no instance of the ring.
    if step.decision is _Decision.LEAVE_INSTANCE and (
            _is_elsewhere(seen, node)):
        return step.decision.name, reason
    return f'{host}: {step.decision.name}', reason


def _acting(steps: Mapping[str, planner.Step], holders: Sequence[str],
            desired: str | None) -> str | None:
    """Name the service that acts on a node.

    That is the one that takes it, or else the one that has it, or else the one
    that would have it.

    :param steps: what each service does with the node
    :param holders: the services that the instance and the node belong to
    :param desired: the desired owner, if there is one
    :returns: None if nobody lists the node
    """
    first = [host for host in (*holders, desired or '') if host in steps]
    order = [*first, *(host for host in steps if host not in first)]
    taking = [host for host in order if steps[host].decision.takes
              or steps[host].decision.takes_instance]
    having = [host for host in order
              if steps[host].decision not in _LEAVES]
    leaving = [host for host in order if host == desired] + order
    return next(iter([*taking, *having, *leaving]), None)


def _is_elsewhere(seen: snapshot.Snapshot, node: snapshot.Node) -> bool:
    """Say whether Nova does not have the instance on a node, with Ironic."""
    instance = seen.instance_on(node)
    return (instance is None or instance.host is None
            or instance.node != node.uuid
            or model.canonical(instance.host) in seen.others | seen.other_rows)


def _advise(seen: snapshot.Snapshot, node: snapshot.Node, host: str,
            step: planner.Step) -> str | None:
    """Say what an operator has to know of an instance that is left alone.

    :param host: the canonical name of the service that leaves it alone
    :param step: its step
    """
    if step.decision is not _Decision.LEAVE_INSTANCE:
        return None
    instance = seen.instance_on(node)
    if instance is None or instance.host is None:
        return ('Nova does not have the instance, or it has no service: its '
                'task for deleted instances will see to it')
    if instance.node != node.uuid:
        return (f'Nova has the instance on {instance.node}, with '
                f'{instance.host}')
    if _is_elsewhere(seen, node):
        return f'{instance.host} has nodes that are not of Ironic'
    found = seen.profiles.get(host)
    if seen.state(instance.host) is membership.State.ABSENT and (
            found is not None and found.mobility != 'pinned'):
        return (f'{instance.host} is down, and nobody has said that it is '
                'dead: it counts as such after [ironic_ring] failover_after, '
                f'or after "nova-ironic-ring failover {instance.host}"')
    return None
