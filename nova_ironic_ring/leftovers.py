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

"""Removes the records of dead services' nodes that Ironic has no more.

Of its own nodes each service does so in Nova's resource tracker.
"""

from collections.abc import Callable, Container, Iterable
import datetime

from nova import context as nova_context
from nova import exception
from nova import objects
from nova.objects import fields
from nova.scheduler.client import report
from oslo_log import log as logging

from nova_ironic_ring import vanished

LOG = logging.getLogger(__name__)


class Cleaner:
    """Does so for one service, and now and then."""

    def __init__(self) -> None:
        self._guards: dict[str, vanished.Guard] = {}
        self._looked: datetime.datetime | None = None

    def is_due(self, now: datetime.datetime, interval: float) -> bool:
        """Say whether it is time to look, and take it that one looks.

        :param now: the present time, with time zone
        :param interval: seconds between two looks
        """
        if self._looked is not None and (
                now - self._looked).total_seconds() < interval:
            return False
        self._looked = now
        return True

    def clean(self, context: nova_context.RequestContext,
              client: report.SchedulerReportClient, dead: Iterable[str],
              is_for_me: Callable[[str], bool], listed: Container[str],
              is_deleted: Callable[[str], bool], limit: int,
              now: datetime.datetime, window: float) -> None:
        """Remove them.

        :param context: with the rights of an administrator
        :param client: what speaks to Placement
        :param dead: the names of the services that are dead
        :param is_for_me: says whether the ring maps a node to this service
        :param listed: the nodes that Ironic was seen to have
        :param is_deleted: says whether Ironic does not have a node
        :param limit: percent of a service's nodes that may vanish
        :param now: the present time, with time zone
        :param window: seconds in which so many may vanish
        """
        guards = self._guards
        self._guards = {}
        for host in dead:
            guard = self._guards[host] = guards.get(host, vanished.Guard())
            try:
                # A dead service may as well have had another driver.
                rows = [row for row in objects.ComputeNodeList.get_all_by_host(
                    context, host)
                    if row.hypervisor_type == fields.HVType.IRONIC]
            except exception.NotFound:
                continue
            missing = {row.uuid: row for row in rows if row.uuid not in listed}
            was_closed = guard.closed
            guard.look(missing, len(rows), limit, is_deleted, now, window)
            if guard.closed:
                if not was_closed:
                    LOG.error(
                        'Ironic does not show %(missing)d of the %(total)d '
                        'nodes of %(host)s, which is dead, such as %(node)s: '
                        'none of their records is deleted. If the nodes were '
                        'deleted on purpose, set [ironic_ring] '
                        'vanished_nodes_limit to 100 and send SIGHUP.', {
                            'missing': len(missing), 'total': len(rows),
                            'host': host, 'node': min(missing)})
                continue
            for node, row in missing.items():
                try:
                    if is_for_me(node) and is_deleted(node) and _remove(
                            context, client, row):
                        guard.note(node, now)
                except Exception as error:
                    LOG.error('What is left of node %(node)s of %(host)s '
                              'cannot be removed: %(error)s', {
                                  'node': node, 'host': host, 'error': error})


def _remove(context: nova_context.RequestContext,
            client: report.SchedulerReportClient, row: objects.ComputeNode
            ) -> bool:
    """Remove a node's provider and its record."""
    # Without the record, nobody would look for the provider again.
    client.delete_resource_provider(context, row, cascade=True)
    try:
        row.destroy()
    except (exception.ObjectActionError, exception.NotFound):
        return False
    LOG.info('Node %(node)s of %(host)s, which is dead, is no more: its '
             'record is deleted.', {'node': row.uuid, 'host': row.host})
    return True
