# SPDX-License-Identifier: Apache-2.0

"""Asks Placement which allocations fit neither Nova nor Ironic.

Placement lists the allocations of one provider, or of one consumer. So this
asks first what it can tell of many, and then for single ones that differ.
"""

import collections
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias
from urllib import parse

from nova_ironic_ring.command.telling import snapshot

#: Returns what Placement has at a path.
Ask: TypeAlias = Callable[[str], Mapping[str, Any]]

#: How many nodes, and how many instances, it is asked for one by one; also of
#: how many resource classes.
LIMIT = 100


def of_nodes(seen: snapshot.Snapshot, ask: Ask) -> dict[str, frozenset[str]]:
    """Read who has allocations of nodes that should have none, or only one.

    These are the nodes that are free in Ironic and not in Placement, and those
    on which something is being built.

    :param seen: what was read
    :param ask: asks Placement
    :returns: consumers, by the node's UUID; of some nodes if these are many
    """
    recorded = [seen.nodes[uuid] for uuid in sorted(
        seen.nodes.keys() & seen.rows.keys() & (seen.providers or set()))]
    classes = [name for name, _ in collections.Counter(
        node.placement_class for node in recorded).most_common(LIMIT)]
    free = {each['uuid'] for name in classes if name for each in ask(
        f'/resource_providers?resources={name}:1')['resource_providers']}

    def is_odd(node: snapshot.Node) -> bool:
        if node.instance is None:
            return (node.is_available and node.uuid not in free
                    and node.placement_class in classes)
        instance = seen.instance_on(node)
        return instance is not None and instance.is_building
    odd = [node.uuid for node in recorded if is_odd(node)]
    return {uuid: frozenset(ask(
        f'/resource_providers/{uuid}/allocations').get('allocations', ()))
        for uuid in odd[:LIMIT]}


def lacking(seen: snapshot.Snapshot, ask: Ask) -> frozenset[str]:
    """Find instances without an allocation.

    Only projects that use less than they have instances are looked at. Others
    in which another allocation makes up for one that lacks are not.

    :param seen: what was read
    :param ask: asks Placement
    :returns: UUIDs; of some instances if these are many
    """
    by_project: dict[str, list[str]] = {}
    for uuid, each in sorted(seen.instances.items()):
        if each.project and each.host is not None and (
                each.node in seen.rows or each.node in seen.pools):
            by_project.setdefault(each.project, []).append(uuid)
    found: set[str] = set()
    left = LIMIT
    for project, held in sorted(by_project.items()):
        usages = ask(f'/usages?project_id={parse.quote(project)}')['usages']
        missing = len(held) - sum(
            used for name, used in usages.items() if name.startswith('CUSTOM'))
        for uuid in held:
            if missing <= 0 or not left:
                break
            # Builds and deletions have an end.
            if not seen.instances[uuid].is_idle:
                continue
            left -= 1
            if not ask(f'/allocations/{uuid}').get('allocations'):
                found.add(uuid)
                missing -= 1
    return frozenset(found)
