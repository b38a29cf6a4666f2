# SPDX-License-Identifier: Apache-2.0

"""Marks an instance whose build was given up because its service died.

Whoever is to build the instance after all, from an old message, can tell by
the mark.
"""

from nova.compute import utils as compute_utils
from nova.compute import vm_states
from nova import context as nova_context
from nova import exception
from nova import objects
from oslo_log import log as logging

LOG = logging.getLogger(__name__)

# Says in an instance's system metadata which service its build died with.
_MARK = 'ironic_ring_build_died_with'


def mark(instance: objects.Instance, host: str | None) -> None:
    """Say of an instance that its build was given up.

    :param instance: the instance, with its system metadata; it is not saved
    :param host: the name of the service that the build has died with; None if
        it is not known any more
    """
    instance.system_metadata[_MARK] = host or ''


def give_up(context: nova_context.RequestContext, instance: objects.Instance,
            host: str | None) -> None:
    """Set an instance to ERROR, because its build has died with a service.

    Mark and state are saved at once, if nobody has gone on with the build
    since the instance was read: the service may live after all.

    :param context: with the rights of an administrator
    :param instance: the instance, with its system metadata; what else has
        changed of it is saved as well
    :param host: the name of the service; None if it is not known any more
    :raises nova.exception.InstanceNotFound: if it is deleted
    :raises nova.exception.InstanceUpdateConflict: if somebody has gone on
    """
    task = instance.task_state
    mark(instance, host)
    instance.vm_state = vm_states.ERROR
    instance.task_state = None
    instance.save(expected_vm_state=[vm_states.BUILDING],
                  expected_task_state=[task])
    try:
        compute_utils.add_instance_fault_from_exc(
            context, instance, error(instance, host))
    except Exception:
        # What else is to be done for it must not wait for that.
        LOG.exception('Cannot record why instance %s is in ERROR.',
                      instance.uuid)


def given_up_with(instance: objects.Instance) -> str | None:
    """Return the service that the build of an instance has died with.

    :param instance: the instance, with its system metadata
    :returns: None if its build was not given up; empty if the service is not
        known any more
    """
    return instance.system_metadata.get(_MARK)


def error(instance: objects.Instance, host: str | None
          ) -> exception.BuildAbortException:
    """Return the error that says why a build was given up.

    :param instance: the instance
    :param host: the name of the service; None or empty if it is not known any
        more, or if the build was lost on its way
    """
    name = f'the nova-compute {host}' if host else (
        'no nova-compute has claimed it, or its nova-compute')
    return exception.BuildAbortException(
        instance_uuid=instance.uuid,
        reason=f'{name} has died while it was to build it')
