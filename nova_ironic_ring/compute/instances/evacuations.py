# SPDX-License-Identifier: Apache-2.0

"""Refuses evacuations, and cleans up after them.

The machine of an instance is its node, for which no other node can stand in,
and any service can drive it: an instance goes with a takeover instead.
"""

from nova.compute import power_state
from nova.compute import task_states
from nova.compute import vm_states
from nova import context as nova_context
from nova import exception
from nova import objects
from oslo_log import log as logging

from nova_ironic_ring.adapters.nova import evacuations
from nova_ironic_ring.adapters import placement
from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import states

LOG = logging.getLogger(__name__)

_REFUSED = ('a server on a node of Ironic cannot be evacuated, and stays as '
            'it is: when its service is dead, another service takes it over, '
            'so force that service down')


def refuse(instance: objects.Instance) -> None:
    """Refuse the evacuation of an instance to this service.

    Nova takes it for a lack of room: it frees what was reserved here, and
    leaves the state of the instance as it was.

    :param instance: the instance
    :raises nova.exception.ComputeResourcesUnavailable: always
    """
    LOG.warning('Instance %(instance)s is not evacuated from %(host)s: '
                '%(why)s.', {'instance': instance.uuid, 'why': _REFUSED,
                             'host': instance.host})
    raise exception.ComputeResourcesUnavailable(reason=_REFUSED)


def settle(source: upstream.NovaIronicDriver,
           context: nova_context.RequestContext,
           instance: objects.Instance) -> bool:
    """Clean up an instance that was to be evacuated.

    If nobody has refused the evacuation yet, its task ends, and what was
    reserved for it is freed. If the instance is in ERROR, as Nova leaves it if
    it finds no other node, its state becomes that of its machine.

    :param source: the driver that the manager has
    :param context: with the rights of an administrator
    :param instance: an instance of this service, as it is now
    :returns: whether anything was to be done
    :raises Exception: if Nova, Placement or Ironic does not answer
    """
    if instance.task_state == task_states.REBUILDING:
        if not evacuations.was_asked(context, instance.uuid):
            return False
        placement.Placement(source).keep_only(
            instance.uuid, pools.provider(instance.node))
        _end(context, instance)
        return True
    if instance.task_state is None and instance.launched_at is not None and (
            instance.vm_state == vm_states.ERROR) and (
            evacuations.was_asked(context, instance.uuid)):
        return _heal(source, instance)
    return False


def settle_at_start(source: upstream.NovaIronicDriver,
                    context: nova_context.RequestContext,
                    instance: objects.Instance) -> None:
    """Do the same when the service of an instance has come back.

    A failure does not keep the service from starting: the task ends
    nevertheless, because Nova would set the instance to ERROR.

    :param source: as above
    :param context: as above
    :param instance: as above
    """
    try:
        settle(source, context, instance)
    except Exception:
        LOG.exception('Cannot free what an evacuation of instance %s has '
                      'reserved on another node: see "openstack resource '
                      'provider allocation show".', instance.uuid)
        if instance.task_state == task_states.REBUILDING:
            _end(context, instance)


def _end(context: nova_context.RequestContext, instance: objects.Instance
         ) -> None:
    """End the task of an evacuation, if it is still that task."""
    evacuations.fail(context, instance.uuid)
    instance.task_state = None
    try:
        instance.save(expected_task_state=[task_states.REBUILDING])
    except exception.UnexpectedTaskStateError:
        # The destination has refused it meanwhile.
        instance.refresh()
    LOG.info('Instance %(instance)s cannot be evacuated: its state stays '
             '%(state)s.', {
                 'instance': instance.uuid, 'state': instance.vm_state})


def _heal(source: upstream.NovaIronicDriver, instance: objects.Instance
          ) -> bool:
    """Set an instance to the state of its machine, if it has one."""
    state = upstream.provision_of(source, instance).meaning
    if state is states.Meaning.RESCUED:
        # Whoever evacuates it has set it to ERROR first, as Masakari does.
        instance.vm_state = vm_states.RESCUED
    elif state is states.Meaning.SERVICED:
        # Ironic switches its machine off and on meanwhile.
        instance.vm_state = vm_states.ACTIVE
    elif state is states.Meaning.RUNS:
        is_off = source.get_info(instance).state == power_state.SHUTDOWN
        instance.vm_state = vm_states.STOPPED if is_off else vm_states.ACTIVE
    else:
        return False
    instance.save(expected_vm_state=[vm_states.ERROR],
                  expected_task_state=[None])
    LOG.info('Instance %(instance)s was in ERROR because of an evacuation: '
             'its machine is deployed, and it is %(state)s again.',
             {'instance': instance.uuid, 'state': instance.vm_state})
    return True
