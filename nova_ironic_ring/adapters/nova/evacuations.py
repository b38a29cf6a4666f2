# SPDX-License-Identifier: Apache-2.0

"""The evacuations of an instance in Nova's database."""

from nova.compute import instance_actions
from nova import context as nova_context
from nova.objects import fields
from nova.objects import migration

from nova_ironic_ring.adapters.nova import user_requests


def was_asked(context: nova_context.RequestContext, instance: str) -> bool:
    """Return whether the last request for an instance was an evacuation.

    :param context: with the rights of an administrator
    :param instance: its UUID
    """
    last = user_requests.last(context, instance)
    return last is not None and last.action == instance_actions.EVACUATE


def fail(context: nova_context.RequestContext, instance: str) -> None:
    """Set the evacuations of an instance to failed.

    :param context: as above
    :param instance: its UUID
    """
    for each in migration.MigrationList.get_by_filters(context, {
            'instance_uuid': instance, 'status': ['accepted'],
            'migration_type': fields.MigrationType.EVACUATION}):
        each.status = 'failed'
        each.save()
