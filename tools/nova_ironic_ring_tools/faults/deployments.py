# SPDX-License-Identifier: Apache-2.0

"""Deployments that take long, so that a service can die in the middle."""

from collections.abc import Iterator, Sequence
import contextlib

from nova_ironic_ring.lab import cloud
from nova_ironic_ring.lab.running import services

# Seconds that each of the two steps of a deployment takes.
_DELAY = 8


@contextlib.contextmanager
def slow(lab: cloud.Lab) -> Iterator[None]:
    """Let each deployment of Ironic take some seconds.

    :param lab: the lab
    """
    services.Ironic(lab.context, overrides={
        'fake': {'deploy_delay': _DELAY}}).restart()
    try:
        yield
    finally:
        services.Ironic(lab.context).restart()


def wait(lab: cloud.Lab, asked: Sequence[str]) -> None:
    """Wait until Ironic deploys nodes for servers.

    :param lab: the lab
    :param asked: the UUIDs of the servers
    :raises LabError: if it does not
    """
    def are_deploying() -> bool:
        with lab.database.connect('ironic') as opened, (
                opened.cursor()) as cursor:
            cursor.execute('SELECT provision_state FROM nodes '
                           'WHERE instance_uuid IN %s', (asked,))
            return [state for (state,) in cursor.fetchall()] == (
                ['deploying'] * len(asked))

    lab.wait('Deployments', are_deploying, poll=0.1)
