# SPDX-License-Identifier: Apache-2.0

"""What an operator does to a nova-compute, and the effects that are seen."""

from collections.abc import Callable, Mapping
import json
import pathlib
import subprocess
import sys

from nova_ironic_ring.lab import cloud
from nova_ironic_ring.lab import errors
from nova_ironic_ring.lab.running import process
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


def findings(lab: cloud.Lab) -> list[str]:
    """Return what ``nova-ironic-ring check`` finds, a line for each.

    :param lab: the lab
    :raises LabError: if it does not work
    """
    program, *arguments = lab.nova.ring
    done = subprocess.run(
        [str(pathlib.Path(sys.prefix, 'bin', program)), *arguments,
         'check', '-f', 'json'], stdin=subprocess.DEVNULL,
        capture_output=True, text=True,
        env=process.environment(lab.state.directory))
    # With findings, it ends with 1.
    if done.returncode not in (0, 1) or not done.stdout:
        raise errors.LabError(
            f'{program} check ends with {done.returncode}: {done.stderr}')
    found: list[Mapping[str, str]] = json.loads(done.stdout)
    return [f'{line["Subject"]}: {line["Found"]}' for line in found]
