# SPDX-License-Identifier: Apache-2.0

"""The manager of a nova-conductor whose answers can be lost.

Only those to what services of the ring write are: Nova leaves its own tasks as
they are when an answer is lost, with any driver.
"""

import time
from typing import Any

from nova.conductor import manager
import nova.conf
from nova import context as nova_context
from nova import objects

from nova_ironic_ring.lab.inside import lost


def is_of_ring(written: object, method: str) -> bool:
    """Say whether a write is one of the ring, or of a resource tracker.

    :param written: the object that is written
    :param method: its method
    """
    if isinstance(written, objects.ComputeNode):
        return method in ('create', 'save', 'destroy')
    # A claim of Nova sets both.
    return (isinstance(written, objects.Instance) and method == 'save'
            and 'host' in written.obj_what_changed()
            and 'launched_on' not in written.obj_what_changed()
            and written.host is not None)


class LosingManager(manager.ConductorManager):
    """A manager that answers some requests only when nobody waits any more."""

    def object_action(self, context: nova_context.RequestContext,
                      objinst: Any, objmethod: str, args: Any, kwargs: Any
                      ) -> Any:
        """Do what an object is asked for, and answer."""
        is_lost = is_of_ring(objinst, objmethod) and lost.now()
        answer = super().object_action(
            context, objinst, objmethod, args, kwargs)
        if is_lost:
            time.sleep(nova.conf.CONF.rpc_response_timeout + 1)
        return answer
