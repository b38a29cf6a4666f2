# SPDX-License-Identifier: Apache-2.0

"""The evacuations of an instance in Nova's database."""

from nova.compute import instance_actions
from nova import context as nova_context
from nova.objects import fields
from nova.objects import migration

from nova_ironic_ring.adapters.nova import user_requests

_POWER = (instance_actions.START, instance_actions.STOP)


def was_asked(context: nova_context.RequestContext, instance: str) -> bool:
    """Return whether the last request for an instance was an evacuation.

    Whether its machine was switched on or off since does not matter: Ironic
    may have done it, and none of it ends an evacuation.

    :param context: with the rights of an administrator
    :param instance: its UUID
    """
    return next((
        each.action == instance_actions.EVACUATE
        for each in user_requests.latest(context, instance)
        if each.action not in _POWER), False)


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
