# SPDX-License-Identifier: Apache-2.0

"""Reads the answers of Ironic and Placement as plain JSON.

The SDK makes an object of each node, which takes longer than everything else.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import functools
from typing import Any
from typing import TypeAlias
from urllib import parse

from keystoneauth1 import adapter
from keystoneauth1 import exceptions as keystone_exceptions
from keystoneauth1 import loading
from oslo_config import cfg

from nova_ironic_ring.adapters import limits

#: A node, by the names that Ironic has for its fields.
Node: TypeAlias = Mapping[str, Any]

# Ironic's API versions that brought fields of a node, and filters; all others
# are older.
_SINCE = {'conductor_group': (1, 46), 'shard': (1, 82), 'sharded': (1, 82)}
# With names, traits and resource classes.
_OLDEST = (1, 37)
# No node has such a name: with these, the URL would name something else.
_NO_NODES = ('', '.', '..', 'detail')
# How often to try again to change a node that Ironic is busy with; the first
# time after half a second, then after twice as long each.
_ATTEMPTS = 4
_BUSY = (409, 503)


def connect(options: cfg.ConfigOpts, group: str) -> adapter.Adapter:
    """Return a connection to a service with Nova's own account.

    :param options: nova.conf
    :param group: its section on the service
    """
    auth = loading.load_auth_from_conf_options(options, group)
    session = loading.load_session_from_conf_options(options, group, auth=auth)
    limits.limit(session, options, is_hasty=True)
    return loading.load_adapter_from_conf_options(
        options, group, auth=auth, session=session)


def connect_cloud(name: str) -> adapter.Adapter:
    """Return a connection to Ironic with an account of an operator.

    :param name: the name of a cloud in clouds.yaml; ``envvars`` for the
        variables of the environment
    :raises ValueError: if there is no such cloud, or something is wrong with
        it
    """
    # Reading does not need it, and its import takes long.
    from openstack import config
    from openstack import exceptions as sdk_exceptions
    try:
        found = config.OpenStackConfig().get_one(cloud=name)
        return adapter.Adapter(
            found.get_session(), service_type='baremetal',
            interface=found.get_interface('baremetal'),
            region_name=found.get_region_name('baremetal'),
            endpoint_override=found.get_endpoint('baremetal'))
    except sdk_exceptions.ConfigException as error:
        raise ValueError(str(error)) from error


def version_of(names: Iterable[str],
               least: tuple[int, int] = _OLDEST) -> str:
    """Return the oldest version of Ironic's API that has fields and filters.

    :param names: their names, as Ironic has them
    :param least: an older one is not asked for
    :returns: ``major.minor``
    """
    return _text(max(least, _version_of(names)))


def _version_of(names: Iterable[str]) -> tuple[int, int]:
    return max(_OLDEST, *(_SINCE.get(name, _OLDEST) for name in names))


def _text(version: tuple[int, int]) -> str:
    return '.'.join(map(str, version))


def list_nodes(ask: Callable[[Mapping[str, str]], Mapping[str, Any]],
               query: Mapping[str, str]) -> Iterator[Node]:
    """List nodes, page by page.

    :param ask: asks Ironic for a page of its nodes, by a query
    :param query: what to ask for
    """
    marker: dict[str, str] = {}
    while True:
        page = ask({**query, **marker})
        yield from page['nodes']
        if not page.get('next') or not page['nodes']:
            return
        marker = {'marker': page['nodes'][-1]['uuid']}


class Ironic:
    """Ironic, asked without the SDK.

    A method raises keystoneauth1.exceptions.ClientException if Ironic does
    not answer, or refuses.
    """

    def __init__(self, options: cfg.ConfigOpts, cloud: str | None = None
                 ) -> None:
        """Choose the service.

        :param options: nova.conf
        :param cloud: as :func:`connect_cloud` has it; None for Nova's own
            account
        """
        self._options = options
        self._cloud = cloud
        self._client: adapter.Adapter | None = None
        self._url = ''
        self._newest = _OLDEST

    def nodes(self, fields: Sequence[str], **filters: str) -> Iterator[Node]:
        """List nodes.

        :param fields: names of fields, of which ``uuid`` is one. Those that
            this Ironic does not know yet are left out
        :param filters: Ironic's query parameters
        """
        self._connected()
        yield from list_nodes(
            functools.partial(self._page, self._version(fields)),
            {'fields': self._known(fields), **filters})

    def _page(self, version: str, query: Mapping[str, str]
              ) -> Mapping[str, Any]:
        return self._connected().get(
            self._url, params=dict(query), microversion=version,
            headers={'Accept': 'application/json'}).json()

    def node(self, name: str, fields: Sequence[str]) -> Node | None:
        """Read one node.

        :param name: its UUID or its name
        :param fields: as :meth:`nodes`
        :returns: None if there is none
        """
        # A slash is one for Ironic however it is written.
        if name in _NO_NODES or '/' in name:
            return None
        client = self._connected()
        try:
            return client.get(
                f'{self._url}/{parse.quote(name, safe="")}',
                params={'fields': self._known(fields)},
                microversion=self._version(fields)).json()
        except (keystone_exceptions.NotFound, keystone_exceptions.BadRequest):
            # A text that cannot be a name is refused.
            return None

    def knows(self, field: str) -> bool:
        """Return whether nodes of this Ironic have a field.

        :param field: its name
        """
        self._connected()
        return _SINCE.get(field, _OLDEST) <= self._newest

    def set_shard(self, node: str, shard: str | None) -> None:
        """Put a node into a shard.

        It is tried again for some seconds while something is done with the
        node.

        :param node: its UUID
        :param shard: the name of the shard; None for no shard
        """
        client = self._connected()
        change = ({'op': 'remove', 'path': '/shard'} if shard is None else
                  {'op': 'add', 'path': '/shard', 'value': shard})
        client.patch(
            f'{self._url}/{node}', json=[change],
            microversion=self._version(('shard',)),
            headers={'Accept': 'application/json'},
            status_code_retries=_ATTEMPTS, retriable_status_codes=_BUSY)

    def _connected(self) -> adapter.Adapter:
        """Return the connection, and read the versions of the API once."""
        if self._client is None:
            client = (connect_cloud(self._cloud) if self._cloud
                      else connect(self._options, 'ironic'))
            limits.limit(client.session, self._options, is_hasty=True)
            data = client.get_endpoint_data()
            if data is None or not data.url:
                raise keystone_exceptions.EndpointNotFound(
                    'the catalog has no endpoint of it')
            base = data.url.rstrip('/')
            self._url = (base if base.endswith('/v1') else f'{base}/v1'
                         ) + '/nodes'
            self._newest = data.max_microversion or max(_SINCE.values())
            self._client = client
        return self._client

    def _known(self, fields: Iterable[str]) -> str:
        return ','.join(field for field in fields
                        if _SINCE.get(field, _OLDEST) <= self._newest)

    def _version(self, fields: Iterable[str]) -> str:
        """Return the oldest version of the API that has the fields."""
        return _text(min(self._newest, _version_of(fields)))
