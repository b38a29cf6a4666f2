# SPDX-License-Identifier: Apache-2.0

"""The member record of a service: its name, and what the service says there.

It is a compute node of its own in Nova, without inventory, so that no
scheduler chooses it. Its UUID follows from the name of the service, so that
the peers read the records of all services at once, without a search.
"""

import uuid

from nova_ironic_ring.core.values import model

# Never change it: the UUIDs of the records are made of it.
_NAMESPACE = uuid.UUID('0b7d2c1e-5f4a-4c55-9d0e-3a6b8e7f2d94')
#: The end of the name of a record. The names of other compute nodes are UUIDs,
#: or end with the digits of a pool.
SUFFIX = '.ring-member'
# Placement takes 200 characters.
_LONGEST_HOST = 180


def uuid_of(host: str) -> str:
    """Return the UUID of the record of a service, and of its provider.

    :param host: the name of the service, in any case
    """
    return str(uuid.uuid5(_NAMESPACE, model.canonical(host)))


def name(host: str) -> str:
    """Return the name of the record of a service, as Nova lists it.

    :param host: the name of the service, in any case
    """
    shown = model.canonical(host)
    return (shown if len(shown) <= _LONGEST_HOST
            else uuid_of(host)) + SUFFIX


def is_member(node: str | None) -> bool:
    """Return whether a compute node is a member record.

    :param node: its name, as Nova lists it
    """
    # Nova's own tests name nodes by other objects.
    return str(node or '').endswith(SUFFIX)
