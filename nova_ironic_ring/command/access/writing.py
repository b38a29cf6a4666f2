# SPDX-License-Identifier: Apache-2.0

"""Writes what the command changes in Nova, with Nova's own objects.

Its import takes longer than reading a whole deployment, so only commands that
write import it.
"""

from collections.abc import Iterator
import contextlib
import functools
from typing import TYPE_CHECKING

from keystoneauth1 import exceptions as keystone_exceptions
from nova import config
from nova import context as nova_context
from nova import exception
from nova import objects

from nova_ironic_ring.command.access import errors
from nova_ironic_ring.command.access import settings
from nova_ironic_ring.core.taking import pool_gift
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import ports

if TYPE_CHECKING:
    from nova_ironic_ring.adapters.nova import records

# The code below uses them by name.
objects.register_all()


class CellWriter:
    """A cell of Nova.

    :ivar context: its database, with the rights of an administrator
    """

    def __init__(self, context: nova_context.RequestContext) -> None:
        """Choose the cell.

        :param context: its database, with the rights of an administrator
        """
        self.context = context

    def changed_service(self, host: str, **changes: object
                        ) -> objects.Service | None:
        """Return the record of a nova-compute, changed and not saved.

        :param host: its host name
        :param changes: the fields that change
        :returns: None if there is nothing to change
        """
        record = objects.Service.get_by_compute_host(self.context, host)
        # If somebody has disabled it meanwhile, that reason stays.
        if changes.get('disabled') and record.disabled:
            return None
        record.update(changes)
        return record if record.obj_what_changed() else None

    def is_heard_of_since(self, seen: model.Service,
                          record: objects.Service) -> bool:
        """Return whether a nova-compute that was late has come back.

        :param seen: its record at that time
        :param record: its record
        """
        if seen.alive is None:
            return record.last_seen_up not in (None, seen.last_seen)
        # Its heartbeats are not in the database.
        from nova_ironic_ring.adapters.nova import records
        is_up = records.liveness()
        return is_up is not None and is_up(record)

    def update_service(self, record: objects.Service) -> None:
        """Save the record of a nova-compute, as Nova's API does it.

        :param record: the record
        """
        if 'disabled' not in record.obj_what_changed():
            # The API does nothing else in this case, and a failover would have
            # to wait for its import.
            record.save()
            return
        from nova.compute import api
        api.HostAPI().service_update(self.context, record)

    def destroy_record(self, uuid: str) -> bool:
        """Delete the record of a node or of a pool.

        :param uuid: its UUID
        :returns: whether there was one
        :raises CommandError: if Nova refuses
        """
        try:
            found = list(objects.ComputeNodeList.get_all_by_uuids(
                self.context, [uuid]))
            for row in found:
                row.destroy()
            return bool(found)
        except exception.NovaException as error:
            raise errors.CommandError(str(error)) from error

    def give_instance(self, instance: str, expected: ports.Expected,
                      host: str) -> None:
        """Give an instance to another service.

        :param instance: its UUID
        :param expected: its expected place
        :param host: the name of the other service
        :raises CommandError: if something is being done with it by now
        """
        nova_records = self._records_of(host, str(expected.host))
        _see_given(
            instance, nova_records.set_instance_host(instance, expected))

    def give_in_pools(self, gift: pool_gift.Gift, host: str) -> None:
        """Give an instance in a pool to another service.

        :param gift: what is given, and from which pool into which
        :param host: the name of the other service
        :raises CommandError: if something is being done with the instance by
            now, or Placement refuses
        """
        from nova_ironic_ring.adapters import placement
        nova_records = self._records_of(host, gift.host)
        try:
            is_given = pool_gift.give(
                nova_records, placement.Placement(), gift)
        except (keystone_exceptions.ClientException,
                exception.NovaException) as error:
            raise errors.CommandError(
                f'Placement does not move what instance {gift.instance} has '
                f'allocated: see [placement] of nova.conf ({error}).'
            ) from error
        _see_given(gift.instance, is_given)

    def _records_of(self, host: str, giver: str) -> 'records.Nova':
        """Return Nova's records, on behalf of the new service of an instance.

        :param host: its name
        :param giver: the name of the service that has the instance
        :raises CommandError: if that one has nodes that are not of Ironic
        """
        # They import the resource tracker, which most writes do not need.
        from nova_ironic_ring.adapters.nova import records
        found = records.Nova(self.context, host)
        if found.other_drivers([giver]):
            raise errors.CommandError(
                f'{giver} has nodes that are not of Ironic: nothing is taken '
                'from it.')
        return found


def _see_given(instance: str, is_given: bool) -> None:
    """Check that an instance was given away.

    :raises CommandError: if it was not
    """
    if not is_given:
        raise errors.CommandError(
            f'Something is being done with instance {instance} by now: try '
            'again.')


@contextlib.contextmanager
def cell(uuid: str) -> Iterator[CellWriter]:
    """Enter a cell.

    :param uuid: its UUID
    """
    set_up()
    context = nova_context.get_admin_context()
    with nova_context.target_cell(
            context, objects.CellMapping.get_by_uuid(context, uuid)) as inner:
        yield CellWriter(inner)


def url_of(template: str) -> str:
    """Return the connection to a database.

    :param template: as a mapping of a cell has it
    """
    return objects.CellMapping.format_db_url(template)


@functools.cache
def set_up() -> None:
    """Configure Nova's objects with nova.conf, once."""
    settings.parse(config.parse_args)
