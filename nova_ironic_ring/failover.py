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

"""Makes instances of other services, and their nodes, this service's."""

from collections.abc import Container, Mapping
import dataclasses
import datetime
import itertools

from nova import context as nova_context
from nova import exception
from nova import objects
from oslo_log import log as logging

from nova_ironic_ring import records
from nova_ironic_ring import upstream

LOG = logging.getLogger(__name__)

# In one pass: it goes by one picture of the services.
_MOST = 500


@dataclasses.dataclass(frozen=True)
class Estate:
    """What is to change hands.

    :ivar instance: the instance's UUID
    :ivar host: the name of the service that it belongs to
    """

    instance: str
    host: str


class Heir:
    """Takes over the instances of dead services."""

    def __init__(self) -> None:
        #: Since when nodes have had no row that were to be taken over.
        self._without_row: dict[str, datetime.datetime] = {}

    def take_over(self, context: nova_context.RequestContext, me: str,
                  estates: Mapping[str, Estate], now: datetime.datetime,
                  patience: float, strangers: Container[str]
                  ) -> dict[str, objects.Instance]:
        """Make instances of dead services this service's.

        Two services cannot both do so with one: the first step is to delete
        the node's row on condition that it still has the owner that was read,
        the only change of a row that Nova makes on a condition. The resource
        tracker brings the very row back in the same pass.

        :param context: with the rights of an administrator
        :param me: the name of this service
        :param estates: what to take over, by the node's UUID
        :param now: the present time, with time zone
        :param patience: seconds that another service may take from one step
            to the next
        :param strangers: services that may not be taken from: the owners of
            nodes in Ironic may say that instances of these are on their nodes
        :returns: the instances that are this service's now, by node
        """
        estates = {node: estate for node, estate in estates.items()
                   if estate.host not in strangers}
        if not estates:
            self._without_row = {}
            return {}
        # Another heir deletes the row, and then changes the instance: so the
        # rows are read first.
        rows = {row.uuid: row for row in
                objects.ComputeNodeList.get_all_by_uuids(
                    context, sorted(estates))}
        instances = {
            instance.uuid: instance for instance in records.find_instances(
                context, [each.instance for each in estates.values()],
                upstream.RECOVERY_ATTRIBUTES)}
        # Another heir may be at it, unless it has died over it.
        self._without_row = {
            node: self._without_row.get(node, now)
            for node in estates if node not in rows}
        taken = {}
        for node, estate in itertools.islice(estates.items(), _MOST):
            instance = instances.get(estate.instance)
            since = self._without_row.get(node)
            if instance is None or not _is_there(instance, node, estate) or (
                    since and (now - since).total_seconds() < patience):
                continue
            try:
                if _take(instance, rows.get(node), me, node, estate):
                    taken[node] = instance
            except Exception as error:
                # The next pass sees how far it has come.
                LOG.error('Instance %(instance)s of %(host)s cannot be taken '
                          'over: %(error)s', {
                              'instance': estate.instance,
                              'host': estate.host, 'error': error})
                continue
            if node in taken:
                LOG.info('Instance %(instance)s on node %(node)s is taken '
                         'over from %(host)s, which is dead.', {
                             'instance': estate.instance, 'node': node,
                             'host': estate.host})
        return taken


def _take(instance: objects.Instance, row: objects.ComputeNode | None,
          me: str, node: str, estate: Estate) -> bool:
    """Delete a row and rename an instance, unless another was faster."""
    if row is not None:
        try:
            row.destroy()
        except (exception.ObjectActionError, exception.NotFound):
            return False
    # The row may have been another heir's, just before it had its owner.
    try:
        instance.refresh()
    except exception.InstanceNotFound:
        return False
    return _is_there(instance, node, estate) and rename(instance, me)


def _is_there(instance: objects.Instance, node: str, estate: Estate) -> bool:
    """Say whether Nova has an instance where Ironic says that it is."""
    return instance.host == estate.host and instance.node == node


def take_offered(context: nova_context.RequestContext, me: str, node: str,
                 estate: Estate, strangers: Container[str]) -> bool:
    """Make an instance this service's, with the consent of its own.

    The consent names one taker, so there is no other. The row follows in the
    resource tracker, as that of a free node does.

    :param context: with the rights of an administrator
    :param me: the name of this service
    :param node: the node's UUID
    :param estate: the instance
    :param strangers: as :meth:`Heir.take_over` has it
    :returns: False if something is being done with it by now
    """
    if estate.host in strangers:
        return False
    try:
        instance = objects.Instance.get_by_uuid(
            context, estate.instance, expected_attrs=[])
    except exception.InstanceNotFound:
        return False
    if not _is_there(instance, node, estate) or not rename(
            instance, me, expected_task_state=[None]):
        return False
    LOG.info('Instance %(instance)s on node %(node)s is taken over from '
             '%(host)s with its consent.', {
                 'instance': estate.instance, 'node': node,
                 'host': estate.host})
    return True


def rename(instance: objects.Instance, host: str, **expected: object) -> bool:
    """Change the service of an instance, if it is as expected.

    :param instance: the instance
    :param host: the name of the service
    :param expected: as :meth:`nova.objects.Instance.save` has it
    :returns: False if it is not
    """
    instance.host = host
    try:
        instance.save(**expected)
    except (exception.InstanceNotFound, exception.InstanceUpdateConflict):
        return False
    return True
