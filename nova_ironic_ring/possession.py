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

"""Refuses what is to be done with an instance that is another service's.

A service that was frozen, or comes back and finds old messages in its queue,
does not know yet that its instances have been taken over. But what nobody else
has taken up, such as a request on its way when the instance moved, it does:
any service can drive any node.
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

from nova_ironic_ring import membership

LOG = logging.getLogger(__name__)
CONF = cfg.CONF


class NotMineError(exception.UnexpectedTaskStateError):
    """An instance belongs to another service by now.

    To Nova it is the error of a task that another has taken out of its hands,
    after which it leaves the instance's state alone.
    """

    msg_fmt = ('Instance %(instance_uuid)s was taken over by %(host)s: '
               '%(me)s does nothing with it.')


def release(instance: objects.Instance) -> bool:
    """Let go of an instance whose build has failed, if another has it.

    :param instance: the instance; Nova is asked for what it is now
    :returns: whether it belongs to this service, or to nobody; if not, and if
        somebody has brought it to life in the meantime, it cannot be saved
        any more
    """
    lost = _lost(instance)
    if lost is not None and not _is_failed(lost):
        _forbid_saving(instance, lost)
    return lost is None


def spared(method: Callable[..., Any]) -> Callable[..., Any]:
    """Have a driver's method that destroys spare what another service has.

    What was deleted, is being deleted, or whose build has failed, is not
    spared.

    :param method: one that has a parameter ``instance``
    """
    def spare(instance: objects.Instance, call: Callable[[], Any]) -> Any:
        lost = _lost(instance)
        if lost is None or _is_failed(lost) or (
                lost.task_state == task_states.DELETING):
            return call()
        LOG.warning('Instance %(instance)s was taken over by %(host)s: its '
                    'machine is left alone.',
                    {'instance': instance.uuid, 'host': lost.host})
        return None
    return guarded(method, spare)


def require(instance: objects.Instance) -> None:
    """See that something is still to be done with an instance here.

    :param instance: the instance as it was when that was asked for; Nova is
        asked for what it is now
    :raises NotMineError: if it belongs to another service, and its task is not
        the same any more; from then on, its saving raises it as well
    """
    lost = _lost(instance)
    if lost is None or (
            instance.task_state and instance.task_state == lost.task_state):
        return

    # Of some failed tasks Nova would make an instance in ERROR.
    _forbid_saving(instance, lost)
    instance.save()


def required(method: Callable[..., Any]) -> Callable[..., Any]:
    """Have a method of a driver refuse the instances of other services.

    :param method: one that has a parameter ``instance``
    """
    def refuse(instance: objects.Instance, call: Callable[[], Any]) -> Any:
        require(instance)
        return call()
    return guarded(method, refuse)


def guarded(method: Callable[..., Any], guard: Callable[
        [objects.Instance, Callable[[], Any]], Any]) -> Callable[..., Any]:
    """Have something decide on each call of a driver's method.

    :param method: one that has a parameter ``instance``
    :param guard: called instead, with the instance and the call that was made;
        what it returns is returned
    """
    signature = inspect.signature(method)

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        return guard(signature.bind(*args, **kwargs).arguments['instance'],
                     functools.partial(method, *args, **kwargs))
    # Nova compares it with that of its other drivers.
    setattr(call, '__signature__', signature)
    return call


def _is_failed(instance: objects.Instance) -> bool:
    return instance.vm_state in (vm_states.BUILDING, vm_states.ERROR)


def _forbid_saving(instance: objects.Instance, lost: objects.Instance) -> None:
    """Have a copy of an instance refuse to be saved."""
    def refuse(*_: object, **__: object) -> None:
        raise NotMineError(instance_uuid=instance.uuid, host=lost.host,
                           me=CONF.host)
    setattr(instance, 'save', refuse)


def _lost(instance: objects.Instance) -> objects.Instance | None:
    """Return what an instance is now, if another service has it."""
    try:
        now = objects.Instance.get_by_uuid(
            nova_context.get_admin_context(), instance.uuid,
            expected_attrs=[])
    except exception.InstanceNotFound:
        return None
    if not now.host or membership.canonical(now.host) == membership.canonical(
            CONF.host):
        return None
    return now
