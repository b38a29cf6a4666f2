# SPDX-License-Identifier: Apache-2.0

"""Checks of a devstack that is up."""

from collections.abc import Mapping, Sequence
from typing import Any

from nova_ironic_ring_tools.devstack import cloud as clouds
from nova_ironic_ring_tools.devstack import errors
from nova_ironic_ring_tools.devstack import furniture
from nova_ironic_ring_tools.devstack import local_conf
from nova_ironic_ring_tools.devstack import settings

_SERVER = 'nova-ironic-ring-check'
# Seconds. Nova looks at the nodes once a minute, and a service is down after a
# minute without a heartbeat.
_STEADY = 420
_MOVED = 420
_CLEANED = 180
_BUILT = 600


def hosts(first: str, computes: int) -> list[str]:
    """Return the names of the services, as the plugin gives them.

    :param first: the name of devstack's own service
    :param computes: how many services there are
    """
    return [first, *(f'{first}-{number}'
                     for number in range(2, computes + 1))]


def group_of(host: str, names: Sequence[str], groups: Mapping[str, int]
             ) -> str | None:
    """Return the conductor group of a service; None if there are no groups.

    :param host: its name
    :param names: those of all services, in the plugin's order
    :param groups: how many services each group has
    """
    if not groups:
        return None
    each = [group for group, count in groups.items() for _ in range(count)]
    return each[names.index(host)]


class Checks:
    """Checks of a cloud, one after the other."""

    def __init__(self, cloud: clouds.Cloud, wanted: settings.Cloud) -> None:
        """Prepare to check a cloud.

        :param cloud: the cloud
        :param wanted: what it is to be like
        """
        self.cloud = cloud
        self.wanted = wanted
        self.names = hosts(
            cloud.box.root_run('hostname').strip(), wanted.computes)

    def run(self) -> None:
        """Check everything.

        :raises DevstackError: if something is not as it should be
        """
        self._start_over()
        seconds = self._steady()
        print(f'{len(self.names)} nova-computes share {self.wanted.nodes} '
              f'nodes: {self._shares()} (after {seconds:.0f} s).', flush=True)
        server = self._boot()
        print(f'A server is active on {server["host"]}.', flush=True)
        victim = self._victim(server['host'])
        print(f'kill -9 of {victim}: after {self._kill(victim):.0f} s the '
              f'others have its nodes: {self._shares()}.', flush=True)
        print(f'Its start: after {self._revive(victim):.0f} s it has nodes '
              f'again: {self._shares()}.', flush=True)
        self.cloud.box.user_run(
            f'{furniture.PROGRAMS}/nova-ironic-ring check')
        print('nova-ironic-ring check finds nothing.', flush=True)
        self._delete(server['node'])
        print('The server is deleted, and its node available.', flush=True)

    def _start_over(self) -> None:
        """Undo what checks that have failed have left."""
        for host in self.names:
            self._systemctl('start', host=host)
        for server in self.cloud.openstack('server', 'list'):
            if server['Name'] == _SERVER:
                self.cloud.do('server', 'delete', '--wait', server['ID'])

    def _shares(self) -> str:
        """Say how many nodes each service has."""
        return ', '.join(f'{host} {line["Nodes"]}' for host, line in
                         self.cloud.services().items())

    def _steady(self) -> float:
        """Wait until each service has the nodes that the ring gives it."""
        return clouds.until(
            f'{", ".join(self.names)} are members, and that each node is with '
            'the one that the ring maps it to', _STEADY,
            lambda: self.is_steady(self.cloud.services(),
                                   self.cloud.nodes()))

    def is_steady(self, services: Mapping[str, Mapping[str, Any]],
                  nodes: Mapping[str, Mapping[str, Any]]) -> bool:
        """Say whether each node is where it belongs.

        :param services: what nova-ironic-ring shows of each, by its host
        :param nodes: what nova-ironic-ring shows of each, by its UUID
        """
        return (
            set(services) == set(self.names)
            and all(line['State code'] == 'MEMBER'
                    for line in services.values())
            and len(nodes) == self.wanted.nodes
            and sum(line['Nodes'] for line in services.values())
            == self.wanted.nodes
            and all(self._belongs(line) for line in nodes.values()))

    def _belongs(self, node: Mapping[str, Any]) -> bool:
        """Say whether a node is with its desired owner, in its group."""
        owner = node['Owner']
        return (owner in self.names
                and (owner == node['Desired owner'] or node['Instance'])
                and group_of(owner, self.names, self.wanted.groups)
                in (None, node['Conductor group']))

    def _boot(self) -> Mapping[str, str]:
        """Boot a server, and return its host and its node."""
        self.cloud.do(
            'server', 'create', '--flavor', 'baremetal', '--image',
            f'{local_conf.IMAGE}-disk', '--network', 'private', _SERVER)
        clouds.until(f'the server {_SERVER} is built', _BUILT,
                     lambda: self._server()['status'] != 'BUILD')
        server = self._server()
        found = [line for line in self.cloud.nodes().values()
                 if line['Instance'] == server['id']]
        if server['status'] != 'ACTIVE' or not found:
            raise errors.DevstackError(
                f'The server {_SERVER} is {server["status"]}, on '
                f'{len(found)} nodes: see the logs of nova-compute.')
        return {'host': server['OS-EXT-SRV-ATTR:host'],
                'node': found[0]['Node']}

    def _server(self) -> Mapping[str, Any]:
        """Return what Nova says of the server."""
        return self.cloud.openstack('server', 'show', _SERVER)

    def _victim(self, spared: str) -> str:
        """Choose a service whose nodes another can take."""
        services = self.cloud.services()
        for host in reversed(self.names):
            group = group_of(host, self.names, self.wanted.groups)
            peers = [each for each in self.names if each != host and group_of(
                each, self.names, self.wanted.groups) == group]
            if host != spared and peers and services[host]['Nodes']:
                return host
        raise errors.DevstackError(
            'No nova-compute has nodes that another could take: give groups '
            'at least two, or boot more nodes.')

    def _kill(self, host: str) -> float:
        """Kill a service, and wait until others have its nodes."""
        self._systemctl('kill', '--signal=KILL', host=host)
        return clouds.until(
            f'the nodes of {host} are with other services', _MOVED,
            lambda: self._is_without(host))

    def _is_without(self, host: str) -> bool:
        """Say whether a service has no node, and the others have all."""
        owners = [line['Owner'] for line in self.cloud.nodes().values()]
        return (len(owners) == self.wanted.nodes and host not in owners
                and set(owners) <= set(self.names))

    def _revive(self, host: str) -> float:
        """Start a service that was killed."""
        self._systemctl('start', host=host)
        return self._steady()

    def _systemctl(self, *words: str, host: str) -> None:
        """Tell systemd something about a service."""
        self.cloud.box.root_run('systemctl', *words, self._unit(host))

    def _unit(self, host: str) -> str:
        """Name the unit of a service, as devstack and the plugin do."""
        number = self.names.index(host) + 1
        return 'devstack@n-cpu' + (f'-{number}' if number > 1 else '')

    def _delete(self, node: str) -> None:
        """Delete the server, and wait for its node."""
        self.cloud.do('server', 'delete', '--wait', _SERVER)
        clouds.until(
            f'the node {node} is available again', _CLEANED,
            lambda: self.cloud.openstack(
                'baremetal', 'node', 'show', node,
                system=True)['provision_state'] == 'available')
