# SPDX-License-Identifier: Apache-2.0

"""Gives an instance in a pool of one service that lives to that of another.

An operator does so. The steps are those of a takeover, in the same order: the
pool has room, the allocation is moved, the instance is changed. Where this
ends before the last step, the service that has the allocation gives it back in
its next pass.
"""

import dataclasses

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
    source, target = pools.uuid_of(gift.source), pools.uuid_of(gift.target)
    placement.make_room(gift.target, gift.source)
    if not placement.move(gift.instance, {source}, target):
        return False
    if nova.place_instance(gift.instance, ports.Expected(
            gift.host, gift.source), gift.target):
        return True
    placement.make_room(gift.source, gift.target)
    placement.move(gift.instance, {target}, source)
    return False
