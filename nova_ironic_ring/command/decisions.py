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
from nova_ironic_ring.command import prospect
from nova_ironic_ring.command import snapshot
from nova_ironic_ring.core import decisions
from nova_ironic_ring.core import model

_Decision = decisions.Decision

# With these a service has nothing to do with a node: another one acts.
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
    """Return the decision of the service that has to act, and why.

    Those are asked that may have to: the service that has the instance or the
    node, which has to let go of it first, then the desired owner.
    """
    if key is None or desired is None:
        return 'none', 'no member lives that could decide'
    row, instance = seen.rows.get(node.uuid), seen.instance_on(node)
    ring = prospect.of(seen, key)
    asked = [instance.host if instance else None, row.owner if row else None]
    steps = {
        host: step for name in [*asked, desired] if name is not None
        and (step := ring.step(host := model.canonical(name), node.uuid))}
    if not steps:
        return 'none', 'no service that could decide lists the node'
    host = next((host for host, step in steps.items()
                 if step.decision not in _LEAVES), next(reversed(steps)))
    # The owner has consented: now the taker acts.
    if steps[host].decision.offers and desired in steps and (
            steps[desired].decision.takes
            or steps[desired].decision.takes_instance):
        host = desired
    return (f'{host}: {steps[host].decision.name}',
            f'the node is {steps[host].why}')
