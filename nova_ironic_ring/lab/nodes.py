# SPDX-License-Identifier: Apache-2.0

"""Nodes of Ironic with fake hardware, instead of machines."""

from collections.abc import Callable, Iterable, Mapping, Sequence
import concurrent.futures
import re
from typing import Any
import uuid

from openstack.baremetal.v1 import node as sdk_node
from openstack import exceptions

from nova_ironic_ring.core.values import plural
from nova_ironic_ring.lab import errors
from nova_ironic_ring.lab.running import services
from nova_ironic_ring.lab.running import state as lab_state
from nova_ironic_ring.lab import shapes as lab_shapes
from nova_ironic_ring.lab import tenant
from nova_ironic_ring.lab import waiting

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, 'nova-ironic-ring')
# Attributes of nodes that can have volumes of Cinder.
_WITH_VOLUMES = {'storage_interface': 'cinder',
                 'deploy_interface': services.DEPLOY_INTERFACE}
_BOOTS_VOLUMES = ('iscsi_boot:true',)
_THREADS = 4
_TIMEOUT = 300
_POLL = 0.3


def enroll(state: lab_state.State, count: int,
           shapes: Sequence[lab_shapes.Shape] = lab_shapes.MIXED,
           **attributes: object) -> list[str]:
    """Add nodes that Nova can use at once.

    :param state: the lab's settings; Ironic must answer
    :param count: how many
    :param shapes: the nodes have these in turn, by their numbers
    :param attributes: attributes for each node, as Ironic names them, which
        replace those of its shape
    :returns: their UUIDs
    :raises LabError: if Ironic refuses a node, or takes too long
    """
    try:
        return _enroll(state, count, shapes, attributes)
    except exceptions.SDKException as error:
        raise errors.LabError(
            f'Ironic refuses the nodes: {error}.') from error


def _enroll(state: lab_state.State, count: int,
            shapes: Sequence[lab_shapes.Shape],
            attributes: Mapping[str, object]) -> list[str]:
    project = tenant.connect(state).current_project_id
    baremetal = tenant.connect(state, tenant.SYSTEM_CLOUD).baremetal
    numbers = [int(match[1]) for node in baremetal.nodes(fields=['name'])
               if (match := re.fullmatch(r'node-(\d+)', node.name or ''))]
    first = max(numbers, default=0) + 1

    def create(number: int) -> str:
        shape = lab_shapes.of(number, shapes)
        node = baremetal.create_node(**{
            'name': f'node-{number}',
            # The same in each lab, so that the ring is the same too.
            'id': str(uuid.uuid5(_NAMESPACE, f'node-{number}')),
            'driver': 'fake-hardware',
            # The project's users see their own nodes only.
            'owner': project,
        } | shape.attributes(_BOOTS_VOLUMES if state.volumes else ()) | (
            _WITH_VOLUMES if state.volumes else {}) | dict(attributes)).id
        if shape.traits:
            baremetal.set_node_traits(node, sorted(shape.traits))
        if state.volumes:
            for kind, connector in (
                    ('iqn', f'iqn.2026-01.net.example:{node}'),
                    # From a network for benchmarks: nothing has this address.
                    ('ip', f'198.18.{number >> 8 & 255}.{number & 255}')):
                baremetal.create_volume_connector(
                    node_id=node, type=kind, connector_id=connector)
        return node

    with concurrent.futures.ThreadPoolExecutor(_THREADS) as pool:
        nodes = list(pool.map(create, range(first, first + count)))

        def each(action: Callable[[str], object], what: str,
                 done: Callable[[sdk_node.Node], bool]) -> None:
            list(pool.map(action, nodes))
            _wait(baremetal, nodes, what, done)

        each(lambda node: baremetal.set_node_provision_state(node, 'manage'),
             'manageable', lambda node: node.provision_state == 'manageable')
        each(lambda node: baremetal.set_node_provision_state(node, 'provide'),
             'available', lambda node: node.provision_state == 'available')
        # Nova treats a node of unknown power state as reserved, and a server
        # as shut off if its node is off. Fake hardware does not turn on when
        # it is deployed.
        each(lambda node: baremetal.set_node_power_state(node, 'power on'),
             'powered on', lambda node: node.power_state == 'power on')
    return nodes


def _wait(baremetal: Any, nodes: Iterable[str], what: str,
          done: Callable[[sdk_node.Node], bool]) -> None:
    """Wait until all nodes are as wanted.

    The SDK's own function for this would ask Ironic for each node separately,
    and there may be thousands.
    """
    left = set(nodes)

    def is_over() -> bool:
        left.difference_update(node.id for node in baremetal.nodes(fields=[
            'uuid', 'provision_state', 'power_state']) if done(node))
        return not left

    if not waiting.until(is_over, _TIMEOUT, _POLL):
        raise errors.LabError(
            f'{plural.of(len(left), "node is", "nodes are")} not {what} '
            f'after {_TIMEOUT} s, '
            f'{sorted(left)[0]} among them: see what "openstack baremetal '
            'node show" says of it.')
