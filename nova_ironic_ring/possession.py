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

from nova import context as nova_context
from nova import exception
from nova import objects
from oslo_config import cfg

from nova_ironic_ring import membership

CONF = cfg.CONF


class NotMineError(exception.UnexpectedTaskStateError):
    """An instance belongs to another service by now.

    To Nova it is the error of a task that another has taken out of its hands,
    after which it leaves the instance's state alone.
    """

    msg_fmt = ('Instance %(instance_uuid)s was taken over by %(host)s: '
               '%(me)s does nothing with it.')


def is_mine(instance: objects.Instance) -> bool:
    """Say whether an instance belongs to this service, or to nobody.

    :param instance: the instance; Nova is asked for what it is now
    """
    return _lost(instance) is None


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

    def refuse(*_: object, **__: object) -> None:
        raise NotMineError(instance_uuid=instance.uuid, host=lost.host,
                           me=CONF.host)

    # Of some failed tasks Nova would make an instance in ERROR.
    setattr(instance, 'save', refuse)
    refuse()


def required(method: Callable[..., Any]) -> Callable[..., Any]:
    """Have a method of a driver refuse the instances of other services.

    :param method: one that has a parameter ``instance``
    """
    signature = inspect.signature(method)

    @functools.wraps(method)
    def refusing(*args: Any, **kwargs: Any) -> Any:
        require(signature.bind(*args, **kwargs).arguments['instance'])
        return method(*args, **kwargs)
    return refusing


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
