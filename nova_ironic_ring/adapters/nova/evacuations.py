# SPDX-License-Identifier: Apache-2.0

"""The evacuations of an instance in Nova's database."""

from nova.compute import instance_actions
from nova import context as nova_context
from nova.objects import fields
from nova.objects import instance_action
from nova.objects import migration

from nova_ironic_ring.core.deciding import audit

# Masakari locks a server while it evacuates it; and it may have been taken
# over since.
_BESIDE = frozenset({instance_actions.LOCK, instance_actions.UNLOCK,
                     *audit.ACTIONS.values()})
# Among so many is the last one that is none of those.
_LATEST = 20


def was_asked(context: nova_context.RequestContext, instance: str) -> bool:
    """Return whether the last request for an instance was an evacuation.

    :param context: with the rights of an administrator
    :param instance: its UUID
    """
    found = instance_action.InstanceActionList.get_by_instance_uuid(
        context, instance, limit=_LATEST)
    last = next((each.action for each in found
                 if each.action not in _BESIDE), None)
    return bool(last == instance_actions.EVACUATE)


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
