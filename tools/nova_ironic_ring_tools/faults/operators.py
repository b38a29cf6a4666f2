# SPDX-License-Identifier: Apache-2.0

"""What an operator does to a nova-compute, and a wait for the effects."""

from collections.abc import Callable

from nova_ironic_ring.lab import cloud
from nova_ironic_ring.lab import waiting

_POLL = 0.5


def set_enabled(lab: cloud.Lab, name: str, enabled: bool) -> None:
    """Enable or disable a nova-compute.

    :param lab: the lab
    :param name: its host name
    :param enabled: whether it is to be given builds
    """
    compute = lab.connect().compute
    (service,) = compute.services(host=name, binary='nova-compute')
    if enabled:
        compute.enable_service(service)
    else:
        compute.disable_service(service)


def force_down(lab: cloud.Lab, name: str, forced: bool) -> None:
    """Force a nova-compute down, or let it be up again.

    :param lab: the lab
    :param name: its host name
    :param forced: whether it is to be down
    """
    compute = lab.connect().compute
    (service,) = compute.services(host=name, binary='nova-compute')
    compute.update_service_forced_down(service, name, 'nova-compute', forced)


def wait(done: Callable[[], bool], patience: float) -> bool:
    """Wait until something is true.

    :param done: returns whether it is true
    :param patience: how long to wait, in seconds
    :returns: False if it is still not true after that time
    """
    return waiting.until(done, patience, _POLL)
