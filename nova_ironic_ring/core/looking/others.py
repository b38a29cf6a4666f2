# SPDX-License-Identifier: Apache-2.0

"""Finds the services that the instances on this service's nodes belong to.

The decisions on them are in :mod:`nova_ironic_ring.core.deciding.decisions`.
"""

from collections.abc import Container, Iterable, Mapping

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.looking import look
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import profile


def instances(this: one_pass.Pass, wanted: Mapping[str, str],
              rows: Mapping[str, model.Row]
              ) -> tuple[dict[str, model.Instance], frozenset[str]]:
    """Find out which services the instances of others belong to.

    They are read once, and again if the owner of the node has changed: then
    the instance may have another service as well. Instances that Nova does not
    have, or has on another node, are read until that has changed.

    :param this: the pass
    :param wanted: the node of each of them in Ironic
    :param rows: the rows of nodes, as far as they were read
    :returns: the instances, by UUID, and those of their services that run
        another driver
    """
    known = this.memory.instances
    unknown = [
        uuid for uuid, node in wanted.items()
        if (instance := known.get(uuid)) is None
        or instance.host is None or not pools.has(instance, node)
        or (node in rows and rows[node].owner != instance.host)]
    read = this.world.nova.instances(unknown) if unknown else {}
    hosts = {instance.host for instance in read.values() if instance.host}
    other_drivers = this.memory.other_drivers - frozenset(
        map(model.canonical, hosts))
    if hosts:
        other_drivers |= this.world.nova.other_drivers(sorted(hosts))
    gone = set(unknown) - read.keys()
    return {uuid: read.get(uuid) or known[uuid] for uuid in wanted
            if uuid not in gone}, other_drivers


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


def services(this: one_pass.Pass, hosts: Iterable[str],
             are_needed: bool = False) -> observation.Others:
    """Look at all services if the ring does not know one of these.

    :param this: the pass
    :param hosts: the names of services
    :param are_needed: whether to look at all in any case
    """
    if are_needed or any(
            model.canonical(host) not in this.standing.membership.states
            for host in hosts):
        return look.at_all_services(this)
    return observation.Others()


def consents(this: one_pass.Pass, rows: Iterable[model.Row],
             members: membership.Membership) -> dict[str, model.LastPass]:
    """Read the consents by ring for free nodes that are waited for.

    All rows of such an owner are read, because its newest report counts: if a
    service could not write one row, its report is in another.

    :param this: the pass
    :param rows: the rows of these nodes
    :param members: what the owners are
    :returns: what each reports about its last good pass, by canonical name
    """
    owners = {row.owner for row in rows
              if row.taker is None and row.protocol >= profile.BY_RING
              and members.state(row.owner).gives
              and row.owner_name != this.current.me}
    return this.world.nova.last_passes(sorted(owners)) if owners else {}
