# SPDX-License-Identifier: Apache-2.0

"""The cloud in the container, as its operator sees it."""

from collections.abc import Callable, Mapping
import json
import shlex
import time
from typing import Any

from nova_ironic_ring_tools.devstack import container
from nova_ironic_ring_tools.devstack import errors
from nova_ironic_ring_tools.devstack import furniture

# Who may change all nodes; who has the network, and sees all servers.
_SYSTEM = 'devstack-system-admin'
_ADMIN = 'devstack-admin-demo'
_POLL = 5


class Cloud:
    """A devstack that is up."""

    def __init__(self, box: container.Container) -> None:
        """Look at a cloud.

        :param box: the container that it runs in
        """
        self.box = box

    def ring(self, *words: str) -> Any:
        """Return what nova-ironic-ring prints.

        :param words: its arguments, without those for the format
        :raises DevstackError: if it fails
        """
        return json.loads(self._program('nova-ironic-ring', *words,
                                        '-f', 'json'))

    def openstack(self, *words: str, system: bool = False) -> Any:
        """Return what openstack prints.

        :param words: its arguments, without those for the format
        :param system: whether the system is its scope, not a project
        :raises DevstackError: if it fails
        """
        return json.loads(self.do(*words, '-f', 'json', system=system))

    def do(self, *words: str, system: bool = False) -> str:
        """Run openstack, and return what it prints.

        :param words: its arguments
        :param system: whether the system is its scope, not a project
        :raises DevstackError: if it fails
        """
        return self._program('openstack', '--os-cloud',
                             _SYSTEM if system else _ADMIN, *words)

    def _program(self, name: str, *words: str) -> str:
        """Run a program of the cloud as the user of devstack."""
        return self.box.user_run(shlex.join(
            [str(furniture.PROGRAMS / name), *words]))

    def services(self) -> Mapping[str, Mapping[str, Any]]:
        """Return what the ring says of each service, by its host."""
        return {line['Host']: line for line in self.ring('show')}

    def nodes(self) -> Mapping[str, Mapping[str, Any]]:
        """Return what the ring says of each node, by its UUID."""
        return {line['Node']: line for line in self.ring('node', 'list')}


def until(what: str, seconds: float, done: Callable[[], bool]) -> float:
    """Wait until something is true, and say how many seconds that took.

    :param what: that, for a sentence
    :param seconds: for how long to wait
    :param done: says whether it is true
    :raises DevstackError: if it does not come true
    """
    begin = time.monotonic()
    while not done():
        if time.monotonic() - begin > seconds:
            raise errors.DevstackError(
                f'After {seconds:.0f} seconds it is not so that {what}.')
        time.sleep(_POLL)
    return time.monotonic() - begin
