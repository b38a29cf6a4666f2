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

from nova_ironic_ring.command import overview
from nova_ironic_ring.command import snapshot
from nova_ironic_ring import membership
from nova_ironic_ring import ownership

_Decision = ownership.Decision
_State = membership.State


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
    decision, reason = _decide(seen, node, members[0] if members else None)
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
    service = seen.hosts.get(membership.canonical(host))
    return ('not in Nova' if service is None
            else overview.describe(seen, service))


def _decide(seen: snapshot.Snapshot, node: snapshot.Node,
            desired: str | None) -> tuple[str, str]:
    """Return the decision of the service that has to act, and why.

    That is the desired owner, unless the one that has the node lives and has
    to let go of it first. What a service remembers from its passes, such as
    how long it has waited, is not known here.
    """
    row = seen.rows.get(node.uuid)
    instance = seen.instance_on(node)
    if node.instance is not None:
        return _decide_on_instance(seen, node, instance, row, desired)
    if desired is None:
        return 'none', 'no member lives that could decide'
    owner = membership.canonical(row.owner) if row else None
    state = seen.state(row.owner) if row else _State.GONE
    free = ownership.Free(
        desired, snapshot.row_of(row) if row else None, state)
    if owner is not None and owner != desired and state.gives and (
            row is not None and row.taker != desired):
        return _words(owner, ownership.decide(owner, free))
    return _words(desired, ownership.decide(desired, free))


def _decide_on_instance(
        seen: snapshot.Snapshot, node: snapshot.Node,
        instance: snapshot.Instance | None, row: snapshot.Row | None,
        desired: str | None) -> tuple[str, str]:
    if instance is None or instance.host is None:
        return ('LEAVE_INSTANCE', 'Nova does not have the instance, or it has '
                'no service: its task for deleted instances will see to it')
    host = membership.canonical(instance.host)
    if instance.node != node.uuid or host in seen.others:
        return ('LEAVE_INSTANCE', 'Nova has the instance on '
                f'{instance.node}, with {instance.host}: see who has set the '
                'instance_uuid of the node')
    state = seen.state(host)
    found = seen.profiles.get(desired or '')
    if state.gives:
        follows = instance.is_idle and host in seen.profiles and (
            seen.profiles[host].mobility == 'follow')
        return _words(host, ownership.decide_on_instance(
            host, ownership.Occupied(
                desired, True, host, snapshot.row_of(row) if row else None,
                may_follow=follows)))
    if desired is None:
        return 'none', f'{instance.host} is {state.value}, and no member lives'
    if found is None or found.mobility == 'pinned':
        return _words(desired, _Decision.LEAVE_INSTANCE)
    if state is _State.DOWN:
        return (f'{desired}: LEAVE_INSTANCE',
                f'{instance.host} is down, and nobody has said that it is '
                'dead; it counts as such after [ironic_ring] failover_after, '
                f'or after "nova-ironic-ring failover {instance.host}"')
    return _words(desired, ownership.decide_on_instance(
        desired, ownership.Occupied(desired, False, host, is_dead=True)))


def _words(host: str, decision: ownership.Decision) -> tuple[str, str]:
    return f'{host}: {decision.name}', f'the node is {decision.value}'
