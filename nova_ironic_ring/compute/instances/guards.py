# SPDX-License-Identifier: Apache-2.0

"""Refuses requests for an instance that belongs to another service.

A service that was frozen, or comes back and finds old messages in its queue,
does not know yet that its instances have been taken over. But a request that
was on its way when the instance was taken over, and that nobody else has taken
up, is carried out: any service can drive any node.
"""

from collections.abc import Callable
import functools
import inspect
from typing import Any

from nova.compute import task_states
from nova.compute import vm_states
from nova import context as nova_context
from nova import exception
from nova import objects
from oslo_config import cfg
from oslo_log import log as logging

from nova_ironic_ring.adapters.nova import marks
from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.core.values import model

LOG = logging.getLogger(__name__)
CONF = cfg.CONF

# In these states, a build is an unshelving.
_SHELVED = (vm_states.SHELVED, vm_states.SHELVED_OFFLOADED)

#: A call of a driver's method that waits for a guard's word.
Call = Callable[[], Any]
Guard = Callable[[objects.Instance, Call], Any]


class NotMineError(exception.UnexpectedTaskStateError):
    """An instance belongs to another service now.

    Nova treats it as the error of a task that somebody else has changed, and
    then leaves the instance's state alone.
    """

    msg_fmt = ('Instance %(instance_uuid)s was taken over by %(host)s: '
               '%(me)s does nothing with it.')


def guarded(guard: Guard, methods: str) -> Callable[[type], type]:
    """Let a guard decide on each call of some methods of Nova's driver.

    :param guard: called instead, with the instance and the call that was made;
        what it returns is returned
    :param methods: their names, with blanks between them; each has a
        parameter ``instance``
    :returns: a decorator of the class that is mixed in before Nova's driver
    """
    def decorate(mixin: type) -> type:
        for name in methods.split():
            # Older releases of Nova do not have all of them.
            if hasattr(upstream.NovaIronicDriver, name):
                setattr(mixin, name, _method(mixin, name, guard))
        return mixin
    return decorate


def _method(mixin: type, name: str, guard: Guard) -> Callable[..., Any]:
    signature = upstream.signature(name)

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        instance = signature.bind(self, *args, **kwargs).arguments['instance']
        return guard(instance, functools.partial(
            getattr(super(mixin, self), name), *args, **kwargs))
    call.__name__ = name
    call.__qualname__ = f'{mixin.__qualname__}.{name}'
    call.__doc__ = inspect.getdoc(getattr(upstream.NovaIronicDriver, name))
    # Nova compares it with that of its other drivers.
    setattr(call, '__signature__', signature)
    return call


def require_mine(instance: objects.Instance, call: Call) -> Any:
    """Call something for an instance, if this service is still to do it.

    :param instance: the instance as it was at the request; its present state
        is read from Nova
    :param call: does it
    :raises NotMineError: if the instance belongs to another service, and its
        task has changed; from then on, saving it raises the error too
    """
    now = _lost_to(instance)
    if now is not None:
        # Of some failed tasks Nova would make an instance in ERROR.
        raise _forbid(instance, now)
    return call()


def require_mine_throughout(instance: objects.Instance, call: Call) -> Any:
    """Call what may take minutes, and check the instance's service after it.

    What Nova does next it does unasked: it ends the task after a reboot,
    whatever the task is by then, and unbinds the ports of an instance that it
    shelves.

    :param instance: the instance as it was when that was asked for
    :param call: does it
    :raises NotMineError: as by :func:`require_mine`, and afterwards as well
    """
    result = require_mine(instance, call)
    return require_mine(instance, lambda: result)


def prepare_if_mine(instance: objects.Instance, call: Call) -> Any:
    """Prepare what a build needs, and check the instance's service after it.

    Nova saves it then as one that is being built, whatever another service has
    made of it meanwhile.

    :param instance: the instance
    :param call: prepares it, which may take long
    :raises NotMineError: if another service has the instance; from then on,
        its saving raises it too
    """
    result = require_mine(instance, call)
    now = _taken_by_another(instance.uuid)
    if now is not None:
        raise _forbid(instance, now)
    return result


def destroy_if_mine(instance: objects.Instance, call: Call) -> Any:
    """Destroy an instance, unless another service has it.

    One that was deleted, is being deleted, or whose build has failed and that
    nobody builds again, is destroyed all the same.

    :param instance: the instance
    :param call: destroys it
    """
    return clean_up_if_mine(instance.uuid, call, instance)


def clean_up_if_mine(uuid: str, call: Call,
                     instance: objects.Instance | None = None) -> Any:
    """Clean up after an instance, unless another service has it.

    The exceptions are those of :func:`destroy_if_mine`.

    :param uuid: the instance's UUID
    :param call: cleans up
    :param instance: the instance as Nova goes on with it, if it does: where
        another service has it, its saving is refused from then on
    """
    now = _taken_by_another(uuid)
    if now is None or now.task_state == task_states.DELETING or (
            now.vm_state == vm_states.DELETED):
        return call()
    if instance is not None:
        # After a build that has failed, Nova would set it to ERROR, or have
        # it built by a third service.
        _forbid(instance, now)
    if _is_failed(now):
        return call()
    LOG.warning('Instance %(instance)s was taken over by %(host)s: its '
                'machine, networks, volumes and allocation are left alone.',
                {'instance': uuid, 'host': now.host})
    return None


def write_if_mine(uuid: str, call: Call, instance: objects.Instance) -> Any:
    """Write what has become of an instance, if that is still to be done here.

    A request may fail before the driver is asked: one from an old message
    does, since its task is over. Nova would write what it has read before.

    :param uuid: the instance's UUID
    :param call: writes it
    :param instance: the instance as it was when that was asked for; where
        another service has it, its saving is refused from now on
    """
    now = _lost_to(instance)
    if now is None:
        return call()
    _forbid(instance, now)
    LOG.warning('Instance %(instance)s belongs to %(host)s now: this service '
                'no longer changes its state.',
                {'instance': uuid, 'host': now.host})
    return None


def is_lost_there(instance: objects.Instance, node: str) -> bool:
    """Return whether another service has an instance on a compute node.

    :param instance: the instance as it was when something was asked for
    :param node: the name of the compute node
    """
    now = _lost_to(instance)
    return now is not None and now.node == node


def is_kept_there(instance: objects.Instance, node: str) -> bool:
    """Return whether an instance needs what it has reserved on a compute node.

    :param instance: the instance as it was when it was to be rebuilt, or to be
        evacuated to the node
    :param node: the name of the compute node
    """
    if is_lost_there(instance, node):
        return True
    # It may have been taken over to the pool that it was to be evacuated to.
    now = _read(instance.uuid)
    return now is not None and now.node == node != instance.node


def was_active(instance: objects.Instance) -> bool:
    """Return whether an instance has a user's data: it was active once.

    :param instance: the instance; Nova is asked for what it is now
    """
    now = _read(instance.uuid)
    return now is not None and now.launched_at is not None


def is_shelved(instance: objects.Instance) -> bool:
    """Return whether an instance has no machine, as it is shelved or deleted.

    :param instance: the instance; Nova is asked for what it is now
    """
    now = _read(instance.uuid)
    return now is None or (now.vm_state == vm_states.SHELVED_OFFLOADED
                           and now.host in (None, CONF.host))


def build_once(instance: objects.Instance, call: Call) -> Any:
    """Build an instance, unless its build was ended with another service.

    :param instance: the instance
    :param call: builds it
    :raises nova.exception.BuildAbortException: if it was, or if another
        service has taken the instance over meanwhile: Nova would build it
        somewhere else after other failures
    """
    # The message may be older than the mark.
    now = objects.Instance.get_by_uuid(
        nova_context.get_admin_context(), instance.uuid,
        expected_attrs=['system_metadata'])
    host = marks.given_up_with(now)
    if host is not None and now.vm_state not in _SHELVED:
        raise marks.error(instance, host)
    try:
        result = call()
    except Exception as error:
        taken = _taken_by_another(instance.uuid)
        if taken is None:
            raise
        raise _abort(instance, taken) from error
    taken = _taken_by_another(instance.uuid)
    if taken is not None:
        # The service that has it now has waited for Ironic as well.
        raise _abort(instance, taken)
    return result


def claim_once(instance: objects.Instance) -> None:
    """Check that a build was not ended before this service claimed a node.

    The claim writes the whole system metadata as they were read before it has
    waited for the resource tracker, and the mark may be lost by that.

    :param instance: the instance, as the claim has saved and read it
    :raises nova.exception.BuildAbortException: if its build was ended
    """
    # A claim leaves the state as it is, and Nova builds nothing in ERROR, and
    # unshelves nothing without the task.
    if instance.vm_state == vm_states.ERROR or (
            instance.vm_state == vm_states.SHELVED_OFFLOADED
            and instance.task_state != task_states.SPAWNING):
        raise marks.error(instance, CONF.host)


def is_to_be_unshelved(instance: objects.Instance,
                       is_allocated: Callable[[], bool]) -> bool:
    """Return whether an instance is still to be unshelved.

    Nova does not check what has happened since the request: the instance may
    be shelved as before, on its way to another service, or active.

    :param instance: the instance as it was when that was asked for; Nova is
        asked for what it is now
    :param is_allocated: says whether it has an allocation of the compute node
    """
    now = _read(instance.uuid)
    if now is not None and (now.vm_state, now.task_state) == (
            vm_states.SHELVED_OFFLOADED, task_states.UNSHELVING):
        try:
            if is_allocated():
                return True
        except Exception as error:
            # Nova asks Placement next, and ends the task if that fails.
            LOG.warning('Cannot read the allocations of instance %(instance)s '
                        'from Placement: %(error)s', {
                            'instance': instance.uuid, 'error': error})
            return True
    LOG.warning('Instance %s is not unshelved here: the request is older '
                'than the failover of this service.', instance.uuid)
    return False


def is_to_be_built(instance: objects.Instance, error: Exception) -> bool:
    """Return whether a build that has failed may be tried on another node.

    :param instance: the instance
    :param error: why it has failed
    """
    if isinstance(error, (exception.BuildAbortException, NotMineError)):
        return False
    now = _read(instance.uuid)
    # Nova's driver reads the instance anew while it waits for Ironic.
    return now is not None and now.task_state == task_states.SPAWNING and (
        now.host == CONF.host)


def is_where_it_was(instance: objects.Instance, is_tracked: bool) -> bool:
    """Return whether Nova may write an instance's place after a rebuild.

    :param instance: the instance as it was when the rebuild began
    :param is_tracked: whether the resource tracker has the compute node that
        is to be written
    """
    now = _read(instance.uuid)
    if now is None or (is_tracked and (now.host, now.node) == (
            instance.host, instance.node)):
        return True
    LOG.warning('Instance %(instance)s was rebuilt, and belongs to %(host)s '
                'on %(node)s now: host and node are not changed.', {
                    'instance': instance.uuid, 'host': now.host,
                    'node': now.node})
    return False


def _abort(instance: objects.Instance, taken: objects.Instance
           ) -> exception.BuildAbortException:
    """Return the error that ends a build, whose instance another has."""
    return exception.BuildAbortException(
        instance_uuid=instance.uuid, reason=str(_forbid(instance, taken)))


def _is_failed(instance: objects.Instance) -> bool:
    """Return whether a build has failed, and nothing is being done about that.

    What was ever active has not: see :func:`was_active`.
    """
    return instance.launched_at is None and instance.task_state is None and (
        instance.vm_state in (vm_states.BUILDING, vm_states.ERROR))


def _forbid(instance: objects.Instance, now: objects.Instance
            ) -> NotMineError:
    """Keep Nova from saving an instance that another service has.

    :returns: the error that its saving raises from now on
    """
    error = NotMineError(
        instance_uuid=instance.uuid, host=now.host, me=CONF.host)
    upstream.forbid_saving(instance, error)
    return error


def _lost_to(instance: objects.Instance) -> objects.Instance | None:
    """Return an instance as it is now, if this service is to leave it alone.

    What nobody else has taken up is done, for any service can drive any node.
    """
    now = _taken_by_another(instance.uuid)
    if now is not None and instance.task_state and (
            instance.task_state == now.task_state):
        return None
    return now


def _taken_by_another(uuid: str) -> objects.Instance | None:
    """Return what an instance is now, if another service has it."""
    now = _read(uuid)
    if now is None or not now.host or (
            model.canonical(now.host) == model.canonical(CONF.host)):
        return None
    return now


def _read(uuid: str) -> objects.Instance | None:
    """Return what an instance is now; None if Nova has deleted it."""
    try:
        return objects.Instance.get_by_uuid(
            nova_context.get_admin_context(), uuid, expected_attrs=[])
    except exception.InstanceNotFound:
        return None


def protected(mixin: type) -> type:
    """Let the guards decide on what Nova's driver does to an instance.

    :param mixin: the class that is mixed in before Nova's driver
    """
    for guard, methods in (
            (require_mine, 'prepare_for_spawn power_on rebuild rescue '
             'unrescue attach_interface detach_interface trigger_crash_dump '
             'get_serial_console get_vnc_console'),
            (require_mine_throughout, 'power_off reboot'),
            (prepare_if_mine, 'prepare_networks_before_block_device_mapping'),
            (destroy_if_mine, 'destroy failed_spawn_cleanup '
             'clean_networks_preparation unplug_vifs'),
            (build_once, 'spawn')):
        mixin = guarded(guard, methods)(mixin)
    return mixin
