# SPDX-License-Identifier: Apache-2.0

"""Gives an instance in a pool of one service that lives to that of another.

An operator does so. Where this ends before the instance is changed, the
service that has the allocation gives it back in its next pass.
"""

import dataclasses

from nova_ironic_ring.core.taking import transfer
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import ports


@dataclasses.dataclass(frozen=True)
class Gift:
    """What is given to whom.

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
    :param gift: what is given
    :returns: False if something is being done with it by now, or others have
        been faster; all is as before then
    """
    wanted = transfer.Transfer(
        gift.instance, model.Instance(gift.host, gift.source),
        {pools.uuid_of(gift.source)}, gift.target, gift.source)
    outcome = transfer.transfer(nova, placement, wanted)
    if outcome is transfer.Outcome.LOST:
        transfer.turn_back(placement, wanted)
    return outcome is transfer.Outcome.DONE
