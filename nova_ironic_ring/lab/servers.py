# SPDX-License-Identifier: Apache-2.0

"""Servers of the lab's cloud, booted and deleted as a user would."""

from collections.abc import Iterable
import functools

from openstack.compute.v2 import server as sdk_server
from openstack import connection
from openstack import exceptions

from nova_ironic_ring.lab import errors
from nova_ironic_ring.lab import tenant
from nova_ironic_ring.lab import waiting

_TIMEOUT = 300
_POLL = 1
# The first that takes a host and a node.
_MICROVERSION = '2.74'


def boot(cloud: connection.Connection, name: str,
         host: str | None = None, node: str | None = None,
         network: str | None = None, flavor: str | None = None,
         **more: object) -> sdk_server.Server:
    """Ask for a server.

    :param cloud: the lab's cloud
    :param name: the server's name
    :param host: the nova-compute that is to have it
    :param node: the UUID of the node that it is to be on
    :param network: the UUID of the network that it is to have a port on
    :param flavor: the name or the ID of its flavor; if it is None, the flavor
        for ``node``, or without a node the usual one
    :param more: further fields of the request, such as ``config_drive``, or an
        empty ``imageRef`` for a server on a volume
    :returns: the server's name and ID; the server is still being built
    :raises LabError: if Nova refuses
    """
    fields = {'name': name, 'networks': [{'uuid': network}] if network
              else 'none', **more}
    if host:
        fields['host'] = host
    if node:
        fields['hypervisor_hostname'] = node
    hints = {'os:scheduler_hints': fields.pop('scheduler_hints', {})}
    try:
        if 'imageRef' not in fields:
            fields['imageRef'] = cloud.image.find_image(
                tenant.IMAGE, ignore_missing=False).id
        if flavor is None:
            flavor = cloud.baremetal.get_node(
                node).resource_class if node else tenant.FLAVOR
        fields['flavorRef'] = cloud.compute.find_flavor(
            flavor, ignore_missing=False).id
        # The SDK that is used with Nova 33 and before cannot ask for a node.
        response = cloud.compute.post(
            '/servers', microversion=_MICROVERSION,
            json={'server': fields, **hints})
        exceptions.raise_from_response(response)
    except exceptions.SDKException as error:
        raise errors.LabError(
            f'Nova does not boot {name}: {error}.') from error
    return sdk_server.Server(id=response.json()['server']['id'], name=name)


def rebuild(cloud: connection.Connection, server: sdk_server.Server) -> None:
    """Ask for a server to be rebuilt from its image.

    :param cloud: the lab's cloud
    :param server: the server
    :raises openstack.exceptions.SDKException: if Nova refuses
    """
    # From 2.93 on, Nova treats each rebuild as one of a server on a volume,
    # which its ironic driver refuses.
    exceptions.raise_from_response(cloud.compute.post(
        f'/servers/{server.id}/action', microversion='2.92',
        json={'rebuild': {'imageRef': server.image.id}}))


def wait_active(cloud: connection.Connection, server: sdk_server.Server,
                timeout: float = _TIMEOUT) -> sdk_server.Server:
    """Wait until a server is active.

    :param cloud: the lab's cloud
    :param server: the server
    :param timeout: seconds
    :returns: the server as it is then
    :raises LabError: if it fails or takes longer
    """
    # The argument may be older than a rebuild or restart of the server.
    server = cloud.compute.get_server(server.id)
    try:
        return cloud.compute.wait_for_server(
            server, interval=_POLL, wait=timeout)
    except exceptions.ResourceTimeout as error:
        server = cloud.compute.get_server(server.id)
        raise errors.LabError(
            f'Server {server.name} is {server.status} after {timeout:g} s: '
            'see what "openstack server show" says of it.') from error
    except exceptions.ResourceFailure as error:
        server = cloud.compute.get_server(server.id)
        reason = (server.fault or {}).get('message', 'no reason given')
        raise errors.LabError(
            f'Server {server.name} has failed: {reason}') from error


def delete(cloud: connection.Connection,
           servers: Iterable[sdk_server.Server],
           timeout: float = _TIMEOUT) -> None:
    """Delete servers and wait until they are gone.

    :param cloud: the lab's cloud
    :param servers: the servers
    :param timeout: seconds
    :raises LabError: if it takes longer
    """
    servers = list(servers)
    for server in servers:
        cloud.compute.delete_server(server)
    for server in servers:
        if not waiting.until(functools.partial(_is_gone, cloud, server),
                             timeout, _POLL):
            raise errors.LabError(
                f'Server {server.name} is still there {timeout:g} s after '
                'its deletion: see what "openstack server show" says of it.')


def _is_gone(cloud: connection.Connection, server: sdk_server.Server) -> bool:
    """Return whether Nova does not know a server any more.

    The SDK does not wait for the last steps: the server is DELETED, while its
    service frees what it has.
    """
    try:
        cloud.compute.get_server(server.id)
    except exceptions.NotFoundException:
        return True
    return False
