# SPDX-License-Identifier: Apache-2.0

"""Deploys nodes with volumes and ports, or whose deployment is to fail.

Ironic's own fake deployment never fails, attaches no volumes, binds no ports
and switches no node on or off; and a node that stays on keeps the volumes of
its last server.
"""

from ironic.common import exception
from ironic.common import states
from ironic.conductor import task_manager
from ironic.conductor import utils
from ironic.drivers import base
from ironic.drivers.modules import deploy_utils
from ironic.drivers.modules import fake

from nova_ironic_ring.lab import shapes


class LabDeploy(fake.FakeDeploy):
    """A fake deployment that attaches volumes and ports, and switches nodes.

    It fails on a node whose driver_info has
    :data:`nova_ironic_ring.lab.shapes.FAILS`.
    """

    def validate(self, task: task_manager.TaskManager) -> None:
        """Check that the node can have its volumes.

        :param task: the node's task
        :raises ironic.common.exception.InvalidParameterValue: if it cannot
        """
        task.driver.storage.validate(task)

    def prepare(self, task: task_manager.TaskManager) -> None:
        """Attach the volumes.

        :param task: the node's task
        """
        super().prepare(task)
        if task.node.provision_state == states.DEPLOYING:
            deploy_utils.populate_storage_driver_internal_info(task)
            task.driver.storage.attach_volumes(task)

    @base.deploy_step(priority=100)
    def deploy(self, task: task_manager.TaskManager) -> None:
        """Bind the ports, and switch the node on.

        :param task: the node's task
        :raises ironic.common.exception.InstanceDeployFailure: if it is to fail
        :raises ironic.common.exception.NetworkError: if the network interface
            of the node is "flat", and the node has no port of a server
        """
        if task.node.driver_info.get(shapes.FAILS):
            raise exception.InstanceDeployFailure(
                f'the driver_info of the node has {shapes.FAILS}')
        super().deploy(task)
        task.driver.network.configure_tenant_networks(task)
        utils.node_power_action(task, states.POWER_ON)

    def tear_down(self, task: task_manager.TaskManager) -> str:
        """Switch the node off, and detach the volumes and the ports.

        :param task: the node's task
        :returns: the node's state after it
        """
        utils.node_power_action(task, states.POWER_OFF)
        task.driver.network.unconfigure_tenant_networks(task)
        task.driver.storage.detach_volumes(task)
        deploy_utils.tear_down_storage_configuration(task)
        return super().tear_down(task)
