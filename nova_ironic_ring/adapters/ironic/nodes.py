# SPDX-License-Identifier: Apache-2.0

"""Ironic behind the port: the listing of nodes and its filters."""

from collections.abc import (
    Collection, Iterable, Iterator, Mapping, Sequence)
import hashlib
import itertools
import json
import threading
from typing import Any

from nova import exception
from nova import utils
from nova.virt.ironic import ironic_states
from openstack.baremetal.v1 import node as sdk_node
from openstack import exceptions as sdk_exceptions
from oslo_log import log as logging

from nova_ironic_ring.adapters import plain
from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.core.looking import changes
from nova_ironic_ring.core.looking import listing
from nova_ironic_ring.core.values import bounds
from nova_ironic_ring.core.values import kinds
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.core.values import states

LOG = logging.getLogger(__name__)

# Ironic's API versions that brought the filters.
_CONDUCTOR_GROUP_VERSION = '1.46'
_SHARD_VERSION = '1.82'
# The fields that say who divides a node; an older Ironic does not have them.
_SINCE = {'conductor_group': _CONDUCTOR_GROUP_VERSION, 'shard': _SHARD_VERSION}
# Fields that do not describe the node, and may change at any time.
_NOT_FOR_NOVA = frozenset(('shard', 'conductor_group', 'links'))
_FINGERPRINT_LENGTH = 12
# What says which builds a node is for.
_DESCRIBING = ('properties', 'resource_class', 'traits')
# Web servers take addresses of some thousand characters.
_LONGEST_FILTER = 1500
# Of a node with a thousand wrong capabilities a few tell enough.
_MOST_COMPLAINTS = 3
# Ironic's name for nodes without a shard in its list of shards. Nodes of a
# shard with this name are divided like these.
_NO_SHARD = 'None'


class Ironic:
    """Ironic's nodes, read with the client of Nova's driver.

    See :class:`nova_ironic_ring.core.values.ports.Ironic`. A method raises
    nova.exception.VirtDriverNotReady if Ironic does not answer, or is too old
    for a filter.
    """

    def __init__(self, driver: upstream.NovaIronicDriver) -> None:
        """Choose the client.

        :param driver: the driver that has it
        """
        self._driver = driver
        #: The nodes, by UUID, of the last listing and what was asked for
        #: since, with all fields that Nova's driver reads. Builds ask in
        #: threads of their own: it is never changed, but replaced as a whole.
        self.found: Mapping[str, plain.Node] = {}
        self._replacing = threading.Lock()
        #: The objects for Nova's driver, and the data from which they were
        #: made: replaced as a whole, too.
        self._made: Mapping[str, tuple[plain.Node, sdk_node.Node]] = {}
        #: A fingerprint of Ironic's data of each node, and the data.
        self._prints: dict[str, tuple[plain.Node, str]] = {}
        #: The raw properties of nodes, and the parsed ones.
        self._described: dict[str, tuple[object, pools.Kind | None,
                                         pools.Size]] = {}
        #: Errors in the properties of nodes, by UUID: each is logged once.
        self._complained: dict[str, tuple[str, ...]] = {}
        #: Why nodes could not be described, by UUID: each reason is logged
        #: once.
        self._failed: dict[str, str] = {}
        #: The fields that are read of each node.
        self._fields = upstream.node_fields()

    def nodes(self, scope: settings.Scope,
              shards: Collection[str] | None = None
              ) -> dict[str, str | None]:
        filters = self._filters(scope)
        fields = upstream.node_fields() + tuple(
            field for field, version in _SINCE.items()
            if upstream.has_api_version(self._driver, version))
        if shards is None:
            listed = upstream.list_nodes(self._driver, fields, **filters)
        else:
            self._require(_SHARD_VERSION, '[ironic_ring] listing = shards')
            listed = itertools.chain(
                upstream.list_nodes(
                    self._driver, fields, sharded='false', **filters),
                self._in_shards(scope, {*shards, _NO_SHARD}, fields))
        # If Ironic fails before the end, builds continue with its previous
        # answer.
        found = {node['uuid']: node for node in listed}
        with self._replacing:
            self.found = found
        # What is known of a node is forgotten with the node. Builds add to it
        # meanwhile.
        for known in self._described, self._complained, self._failed:
            for uuid in known.copy().keys() - found.keys():
                known.pop(uuid, None)
        self._fields = fields
        return _instances(found)

    def more(self, scope: settings.Scope, shards: Collection[str]
             ) -> dict[str, str | None]:
        return self._remember(self._in_shards(scope, shards, self._fields))

    def _in_shards(self, scope: settings.Scope, shards: Collection[str],
                   fields: Sequence[str]) -> Iterator[plain.Node]:
        """List the nodes of some shards."""
        unfit = frozenset(filter(_is_unfit, shards))
        filters = self._filters(scope)
        for names in _batches(sorted(unfit.symmetric_difference(shards))):
            yield from upstream.list_nodes(
                self._driver, fields, shard=names, **filters)
        if unfit:
            # Else nobody would list their nodes.
            yield from (node for node in upstream.list_nodes(
                self._driver, fields, sharded='true', **filters)
                if node['shard'] in unfit)

    def named(self, scope: settings.Scope, nodes: Collection[str]
              ) -> dict[str, str | None]:
        group = scope.conductor_group
        fields = self._fields + (
            () if group is None else ('conductor_group',))
        found = (upstream.find_node(self._driver, node, fields)
                 for node in sorted(nodes))
        return self._remember(
            node for node in found if node is not None and (
                group is None
                or (node['conductor_group'] or '').lower() == group.lower()))

    def shards(self, scope: settings.Scope) -> frozenset[str]:
        self._require(_SHARD_VERSION, '[ironic_ring] listing = shards')
        if scope.conductor_group is None:
            return upstream.shards(
                self._driver, _SHARD_VERSION) - {_NO_SHARD}
        # Ironic does not tell which of them are in a group.
        return frozenset(
            node['shard'] for node in upstream.list_nodes(
                self._driver, ('uuid', 'shard'), **self._filters(scope))
            if node['shard'] is not None) - {_NO_SHARD}

    def places(self, nodes: Iterable[str]) -> dict[str, str]:
        return {node: shard for node in nodes
                if (shard := self.found[node].get('shard')) is not None}

    def groups(self, nodes: Iterable[str]) -> dict[str, str]:
        return {node: (self.found[node].get('conductor_group') or '').lower()
                for node in nodes}

    def uuids(self, scope: settings.Scope) -> frozenset[str]:
        return frozenset(node['uuid'] for node in upstream.list_nodes(
            self._driver, ['uuid'], **self._filters(scope)))

    def nodes_of(self, instances: Iterable[str]) -> dict[str, str | None]:
        wanted = frozenset(instances)
        if len(wanted) <= listing.FEW:
            return self._remember(
                node for instance in sorted(wanted)
                for node in upstream.list_nodes(
                    self._driver, self._fields, instance_uuid=instance))
        return self._remember(
            node for node in upstream.list_nodes(
                self._driver, self._fields, associated='true')
            if node['instance_uuid'] in wanted)

    def is_available(self, node: str) -> bool:
        said = upstream.find_node(
            self._driver, node, ('uuid', 'provision_state'))
        return said is not None and (
            states.meaning(said['provision_state']) is states.Meaning.FREE)

    def is_deleted(self, node: str) -> bool:
        return upstream.is_deleted(self._driver, node)

    def fingerprints(self, nodes: Iterable[str]) -> dict[str, str]:
        listed, before = self.found, self._prints
        found = {}
        for uuid in nodes:
            if uuid not in listed:
                continue
            said, known = listed[uuid], before.get(uuid)
            found[uuid] = (known if known is not None and known[0] == said
                           else (said, _fingerprint(said)))
        self._prints = {**{uuid: known for uuid, known in self._prints.items()
                           if uuid in listed}, **found}
        return {uuid: known[1] for uuid, known in found.items()}

    def fingerprint_of(self, node: sdk_node.Node) -> str | None:
        """Return the fingerprint of what a node was made of for Nova's driver.

        :param node: the node, as Nova's driver has it
        :returns: None if Nova's driver has read the node itself
        """
        said, made = self._made.get(node.id, (None, None))
        return None if said is None or made is not node else _fingerprint(said)

    def latest(self, scope: settings.Scope, after: str | None = None
               ) -> list[ports.Latest]:
        if upstream.has_own_listing(self._driver):
            # What it makes of a node is seen when it lists all of them.
            return []
        listed = self.found
        page = upstream.list_latest(self._driver, self._fields, {
            'limit': str(changes.PAGE), **self._filters(scope),
            **({} if after is None else {'marker': after})})
        news = {node['uuid']: node for node in page
                if _is_news(listed.get(node['uuid']), node)}
        with self._replacing:
            # Of another listing, this one may be older.
            news = {uuid: node for uuid, node in news.items()
                    if self.found.get(uuid) is listed[uuid]}
            if news:
                self.found = {**self.found, **news}
        return [ports.Latest(uuid, self._glance(listed[uuid]),
                             self._glance(news[uuid]))
                if (uuid := node['uuid']) in news else ports.Latest(uuid)
                for node in page]

    def glances(self, nodes: Iterable[str]) -> dict[str, ports.Glance]:
        listed = self.found
        return {node: self._glance(listed[node]) for node in nodes
                if node in listed}

    def _glance(self, node: plain.Node) -> ports.Glance:
        seen = upstream.seen(node)
        return ports.Glance(
            seen.instance_id, upstream.is_ready(self._driver, seen),
            _fingerprint({name: node[name] for name in _DESCRIBING}))

    def describe(self, nodes: Iterable[str]) -> dict[str, pools.Node]:
        listed = self.found
        found = {uuid: listed[uuid] for uuid in nodes}
        return {uuid: self._described_alone(node)
                for uuid, node in found.items()}

    def _described_alone(self, node: plain.Node) -> pools.Node:
        """Convert Ironic's data of a node, whatever these are.

        A node that Nova's driver, or a subclass of it, cannot process affects
        no other.

        :param node: the node, with all that Nova's driver asks of one
        :returns: one on which nothing can be built, if it cannot be processed
        """
        uuid = node['uuid']
        try:
            said = self.said(node)
        except Exception as error:
            reason = bounds.shown(str(error))
            if self._failed.get(uuid) != reason:
                self._failed[uuid] = reason
                LOG.warning(
                    'Node %(node)s cannot be described to Nova, and nothing '
                    'is built on it: %(error)s. See to its properties, traits '
                    'and resource class in Ironic.', {
                        'node': uuid, 'error': reason})
            return pools.Node(None, node['instance_uuid'], False)
        self._failed.pop(uuid, None)
        return said

    def free_nodes(self, scope: settings.Scope) -> dict[str, pools.Node]:
        found = upstream.list_nodes(
            self._driver, upstream.node_fields(), associated='false',
            maintenance='false', provision_state=ironic_states.AVAILABLE,
            **self._filters(scope))
        return {node['uuid']: said for node in found
                if (said := self._described_alone(node)).is_free}

    def find(self, node: str) -> pools.Node | None:
        found = upstream.find_node(
            self._driver, node, upstream.node_fields())
        return None if found is None else self.said(found)

    def reserve(self, node: str, instance: str, kind: pools.Kind,
                rule: kinds.Rule = kinds.Rule()) -> bool:
        client = self._driver.ironic_connection
        try:
            # A node that another has is no reason to try again.
            said = client.update_node(
                sdk_node.Node.existing(id=node), retry_on_conflict=False,
                instance_id=instance)
        except upstream.NO_ANSWER as error:
            LOG.info('Ironic does not give node %(node)s to instance '
                     '%(instance)s: %(error)s', {
                         'node': node, 'instance': instance, 'error': error})
            try:
                # The answer may be lost that has given it.
                said = client.get_node(node)
            except sdk_exceptions.NotFoundException:
                return False
            if said.instance_id is None and (
                    not upstream.is_of_one_node(error)):
                raise
            if said.instance_id != instance:
                return False
        if upstream.is_ready(self._driver, said):
            # It was listed a while ago.
            if rule.kind(self._kind(upstream.as_believed(
                    said, *self._believed(
                        said.id, said.properties, said.traits)))) == kind:
                return True
            LOG.info('Resource class, traits, capabilities or architecture of '
                     'node %(node)s have changed: instance %(instance)s is to '
                     'be built on another.', {
                         'node': node, 'instance': instance})
        else:
            LOG.info('Node %(node)s has gone into %(state)s: instance '
                     '%(instance)s is to be built on another.', {
                         'node': node, 'instance': instance,
                         'state': ('maintenance' if said.is_maintenance
                                   else said.provision_state)})
        client.update_node(said, instance_id=None)
        return False

    def release(self, node: str, instance: str) -> None:
        said = upstream.find_node(
            self._driver, node, ('uuid', 'instance_uuid', 'provision_state'))
        if said is not None and said['instance_uuid'] == instance and (
                states.meaning(said['provision_state'])
                is states.Meaning.FREE):
            self._driver.ironic_connection.update_node(
                sdk_node.Node.existing(id=node, instance_id=instance),
                retry_on_conflict=False, instance_id=None)

    def _filters(self, scope: settings.Scope) -> dict[str, str]:
        """Return the filters that limit a listing to a scope."""
        filters = {}
        if scope.conductor_group is not None:
            self._require(_CONDUCTOR_GROUP_VERSION, '[ironic] conductor_group')
            filters['conductor_group'] = scope.conductor_group
        if scope.shard:
            self._require(_SHARD_VERSION, '[ironic] shard')
            filters['shard'] = scope.shard
        return filters

    def for_nova(self, nodes: Iterable[str]) -> dict[str, sdk_node.Node]:
        """Return nodes as objects for Nova's driver.

        Each is made when its data in Ironic have changed, which takes a
        millisecond.

        :param nodes: UUIDs
        :returns: by UUID, of the nodes that Ironic has shown
        """
        found, made = self.found, self._made
        wanted = {node: made.get(node) for node in nodes if node in found}
        for node, known in wanted.items():
            said = found[node]
            if known is None or known[0] != said:
                properties, traits = self._believed(
                    node, said['properties'], said['traits'])
                wanted[node] = said, upstream.for_nova({
                    **said, 'properties': properties, 'traits': traits})
        new = {node: known for node, known in wanted.items() if known}
        with self._replacing:
            self._made = {**{node: known for node, known in self._made.items()
                             if node in self.found}, **new}
        return {node: known[1] for node, known in new.items()}

    def said(self, node: plain.Node) -> pools.Node:
        """Convert Ironic's data of a node as Nova's driver does.

        Nova complains of malformed properties whenever it looks at them, so it
        looks only at those that have changed.

        :param node: the node, with all that Nova's driver asks of one
        """
        seen = upstream.seen(node)
        made_of = (seen.resource_class, seen.traits, seen.properties)
        known = self._described.get(seen.id)
        if known is None or known[0] != made_of:
            believed = upstream.as_believed(seen, *self._believed(
                seen.id, seen.properties, seen.traits))
            found = upstream.size(self._driver, believed)
            known = self._described[seen.id] = (
                made_of, self._kind(believed), pools.Size(
                    found['memory_mb'], found['local_gb'], found['cpus']))
        _, kind, size = known
        return pools.Node(kind, seen.instance_id,
                          upstream.is_ready(self._driver, seen), size)

    def _believed(self, node: str, said: Mapping[str, Any] | None,
                  traits: Iterable[str] | None
                  ) -> tuple[Mapping[str, Any], list[str]]:
        """Return the credible properties and traits of a node.

        :param node: the node's UUID
        :param said: the properties, as Ironic has them
        :param traits: the traits, likewise
        """
        found, kept = bounds.properties(said), bounds.traits(traits)
        believed = found.said, list(kept.said)
        complaints = found.complaints + kept.complaints
        if complaints == self._complained.get(node, ()):
            return believed
        if complaints:
            self._complained[node] = complaints
            LOG.warning(
                'Node %(node)s has impossible properties or traits in Ironic, '
                'which are ignored: %(complaints)s. Correct them, or ask the '
                'owner of the node to.', {
                    'node': node, 'complaints': '; '.join(
                        complaints[:_MOST_COMPLAINTS])})
        else:
            self._complained.pop(node, None)
        return believed

    def _kind(self, node: upstream.Seen) -> pools.Kind | None:
        resource_class = utils.normalize_rc_name(node.resource_class)
        if resource_class is None:
            return None
        described = upstream.describe(self._driver, node)
        properties = {name: str(value) for name, value
                      in described['stats'].items() if value is not None}
        architecture = upstream.architecture(described)
        return pools.Kind(
            resource_class, frozenset(node.traits or ()),
            frozenset(properties.items()),
            None if architecture == upstream.architecture_of(
                properties.get('cpu_arch')) else architecture)

    def _remember(self, nodes: Iterable[plain.Node]
                  ) -> dict[str, str | None]:
        found = {node['uuid']: node for node in nodes}
        with self._replacing:
            self.found = {**self.found, **found}
        return _instances(found)

    def _require(self, version: str, option: str) -> None:
        """Insist on the API version that an option needs."""
        if upstream.has_api_version(self._driver, version):
            return
        # Without the filter this service would claim the nodes of others.
        LOG.error('%s needs version %s of the Ironic API, which this '
                  'Ironic does not have: upgrade Ironic or unset the option. '
                  'No node is listed until then.', option, version)
        raise exception.VirtDriverNotReady()


def _fingerprint(said: plain.Node) -> str:
    """Return a fingerprint of all that Nova's driver may make of a node."""
    # Ironic may tell traits in another order each time.
    text = json.dumps({name: sorted(value) if name == 'traits' and value
                       else value for name, value in said.items()
                       if name not in _NOT_FOR_NOVA},
                      sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:_FINGERPRINT_LENGTH]


def _is_news(before: plain.Node | None, now: plain.Node) -> bool:
    """Say whether Ironic says something else of a node that was listed."""
    # The listing may have asked for more.
    return before is not None and before != now and (
        before.keys() <= now.keys()) and (
            _fingerprint(before) != _fingerprint(now))


def _instances(nodes: Mapping[str, plain.Node]) -> dict[str, str | None]:
    """Return the instance on each node."""
    return {uuid: node['instance_uuid'] for uuid, node in nodes.items()}


def _is_unfit(shard: str) -> bool:
    """Say whether Ironic cannot be asked for the nodes of a shard.

    It parts the names that it is asked for at commas, and strips them.
    """
    return ',' in shard or shard != shard.strip()


def _batches(names: Iterable[str]) -> Iterator[str]:
    """Join names with commas, so many that the address is not too long."""
    batch: list[str] = []
    for name in names:
        if batch and sum(map(len, batch)) + len(batch) + len(name) > (
                _LONGEST_FILTER):
            yield ','.join(batch)
            batch = []
        batch.append(name)
    if batch:
        yield ','.join(batch)
