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

# The account that may change all nodes; the account that has the network, and
# sees all servers.
_SYSTEM = 'devstack-system-admin'
_ADMIN = 'devstack-admin-demo'
_POLL = 5


class Cloud:
    """A devstack that is up."""

    def __init__(self, box: container.Container) -> None:
        """Choose a cloud.

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

    def baremetal(self, what: str) -> list[dict[str, Any]]:
        """Return all of one kind that Ironic has, by its API's names.

        :param what: the kind: ``node`` or ``conductor``
        :raises DevstackError: if openstack fails
        """
        # Before python-ironicclient 6.0 the names are those of the table's
        # columns, such as "Conductor Group".
        return [{name.lower().replace(' ', '_'): value
                 for name, value in line.items()} for line in self.openstack(
            'baremetal', what, 'list', system=True)]

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
        """Return what nova-ironic-ring shows of each service, by its host."""
        return {line['Host']: line for line in self.ring('show')}

    def nodes(self) -> Mapping[str, Mapping[str, Any]]:
        """Return what nova-ironic-ring shows of each node, by its UUID."""
        return {line['Node']: line for line in self.ring('node', 'list')}


def until(what: str, seconds: float, done: Callable[[], bool]) -> float:
    """Wait until something is true.

    :param what: what is waited for, as the end of the error message
    :param seconds: for how long to wait
    :param done: returns whether it is true
    :returns: the seconds that this took
    :raises DevstackError: if it is not true by then
    """
    begin = time.monotonic()
    while True:
        failure = None
        try:
            if done():
                return time.monotonic() - begin
        except errors.DevstackError as error:
            # Services that are busy or restart may not answer once.
            failure = error
        if time.monotonic() - begin > seconds:
            raise errors.DevstackError(
                f'After {seconds:.0f} seconds it is still not true that '
                f'{what}.' + (f'\n{failure}' if failure else ''))
        time.sleep(_POLL)
