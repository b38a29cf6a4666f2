# SPDX-License-Identifier: Apache-2.0

"""Moves an instance from a pool of a live service to another service's.

Operators use it. If it ends before the instance is changed, the service that
has the allocation gives it back in its next pass.
"""

import dataclasses

from nova_ironic_ring.core.taking import transfer
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import ports


@dataclasses.dataclass(frozen=True)
class Gift:
    """An instance to move, and its destination.

    :ivar instance: the UUID of the instance
    :ivar host: the name of the service that has it
    :ivar source: the name of the pool that it is in
    :ivar target: the name of the pool that it is to be in
    """

    instance: str
    host: str
    source: str
    target: str


def give(nova: ports.Nova, placement: ports.Placement, gift: Gift) -> bool:
    """Give an instance to another service.

    :param nova: the port, in the name of the service that is to have it
    :param placement: the port
    :param gift: the instance and its destination
    :returns: False if it has a task now, or others were faster; then nothing
        has changed
    """
    wanted = transfer.Transfer(
        gift.instance, model.Instance(gift.host, gift.source),
        {pools.uuid_of(gift.source)}, gift.target, gift.source)
    outcome = transfer.transfer(nova, placement, wanted)
    if outcome is transfer.Outcome.LOST:
        transfer.turn_back(placement, wanted)
    return outcome is transfer.Outcome.DONE
