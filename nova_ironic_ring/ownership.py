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

"""What a service does with a node: one decision for each, and its reason."""

from collections.abc import Container
import enum

from nova_ironic_ring import membership
from nova_ironic_ring import ring as ring_module


class Decision(enum.Enum):
    """What this service does with a node in this pass."""

    #: It holds an instance of this service.
    LIST_INSTANCE = 'with an instance of this service'
    #: It is free and this service is its desired owner.
    LIST_FREE = 'free and for this service'
    #: It holds an instance, but none that this service knows as its own.
    LEAVE_INSTANCE = 'with an instance of another service'
    #: It is free and another member is its desired owner.
    LEAVE_FREE = 'free and for another service'

    @property
    def lists(self) -> bool:
        """Whether the node is reported to Nova as this service's."""
        return self in (Decision.LIST_INSTANCE, Decision.LIST_FREE)


def decide(me: str, node: str, instance: str | None,
           my_instances: Container[str],
           ring: ring_module.Ring) -> Decision:
    """Decide on a node by the stock rule, for this service alone.

    The rule is that of Nova's own driver since Newton: nodes with an instance
    of this service always, free nodes by the ring, nodes with the instance of
    another service never.

    :param me: the name of this service
    :param node: the node's UUID
    :param instance: the UUID of the instance on it; None if it is free
    :param my_instances: UUIDs of the instances that belong to this service
    :param ring: the ring of the present members
    """
    if instance is not None:
        if instance in my_instances:
            return Decision.LIST_INSTANCE
        return Decision.LEAVE_INSTANCE
    if ring.owner(node) == membership.canonical(me):
        return Decision.LIST_FREE
    return Decision.LEAVE_FREE
