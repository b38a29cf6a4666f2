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

"""What an operator does to a nova-compute, and how long it takes."""

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
    """Wait until something is true, and say whether it has come about.

    :param done: says whether it is true
    :param patience: how long to wait, in seconds
    """
    return waiting.until(done, patience, _POLL)
