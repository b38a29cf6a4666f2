# SPDX-License-Identifier: Apache-2.0

"""Finds the services that the instances on this service's nodes belong to.

The decisions on them are in :mod:`nova_ironic_ring.core.deciding.decisions`.
"""

from collections.abc import Container, Mapping

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools


def instances(this: one_pass.Pass, wanted: Mapping[str, str],
              rows: Mapping[str, model.Row]
              ) -> tuple[dict[str, model.Instance], frozenset[str]]:
    """Find out which services the instances of others belong to.

    They are read once, and again if the owner of the node has changed: then
    the instance may have another service as well. An operator may have given
    one to a third service: each time the instances of one of their services
    are listed, those that are no longer among them are read again. Instances
    that Nova does not have, or has on another node, are read until that has
    changed.

    :param this: the pass
    :param wanted: the node of each of them in Ironic
    :param rows: the rows of nodes, as far as they were read
    :returns: the instances, by UUID, those of the service that is to be listed
        next first; and those of their services that run another driver
    """
    nova = this.world.nova
    known = {uuid: instance for uuid, instance in this.memory.instances.items()
             if (node := wanted.get(uuid)) is not None
             and instance.host is not None and pools.has(instance, node)
             and (node not in rows or rows[node].owner == instance.host)}
    before = {instance.host_name for instance in known.values()}
    first = next((each.host for each in known.values()), None)
    if first is not None:
        there = nova.instances_of(first)
        # Next time, another service has its turn.
        known = {uuid: each for uuid, each in sorted(
            known.items(), key=lambda item: item[1].host == first)
            if each.host != first or uuid in there}
    unknown = wanted.keys() - known.keys()
    found = known | (nova.instances(unknown) if unknown else {})
    new = sorted({instance.host for instance in found.values()
                  if instance.host and instance.host_name not in before})
    other_drivers = this.memory.other_drivers.intersection(before)
    if new:
        other_drivers |= nova.other_drivers(new)
    return found, other_drivers


def elsewhere(known: Container[str], nodes: model.Nodes,
              of_others: Mapping[str, model.Instance],
              other_drivers: Container[str]) -> list[events.Event]:
    """Return the instances that Ironic and Nova have on different nodes.

    :param known: the instances that were read before, which are not reported
        again
    :param nodes: the instance on each node, by Ironic
    :param of_others: the instances of others, as Nova has them
    :param other_drivers: canonical names of services that run another driver
    """
    return [
        events.InstanceElsewhere(node, uuid, instance.host)
        for node, uuid in nodes.items()
        if uuid is not None and uuid not in known
        and (instance := of_others.get(uuid)) is not None
        and instance.host is not None and (
            not pools.has(instance, node)
            or instance.host_name in other_drivers)]
