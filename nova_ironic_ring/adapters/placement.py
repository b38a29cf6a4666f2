# SPDX-License-Identifier: Apache-2.0

"""Placement behind the port, asked with the client of the resource tracker."""

from collections.abc import Callable, Collection, Iterator, Mapping
import functools
import random
from typing import Any
from typing import TypeAlias

from nova import context as nova_context
from nova import exception
from nova.scheduler.client import report
import os_traits
from oslo_log import log as logging
import requests

from nova_ironic_ring.adapters import limits
from nova_ironic_ring.adapters.nova import evacuations
from nova_ironic_ring.adapters import several
from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.core.values import pools


LOG = logging.getLogger(__name__)

# What a provider has whose service is disabled.
_DISABLED = os_traits.COMPUTE_STATUS_DISABLED
# The version of the API, in which consumers have generations.
_VERSION = '1.28'
# Passes of the resource tracker write the same inventory.
_ATTEMPTS = 4
# The most nodes whose classes are looked up in vain, to find others that are
# free.
_MISSES = 8
# The most of an answer that an error quotes.
_MOST_TEXT = 300
#: An inventory, as Placement has it.
_Known: TypeAlias = Mapping[str, Mapping[str, Any]]
#: What is allocated, by class.
_Resources: TypeAlias = Mapping[str, int]


class RefusedError(exception.NovaException):
    """Placement refuses a request, or something before it does."""

    msg_fmt = 'Placement refuses %(url)s with status %(status)d: %(text)s'


class Placement:
    """What Placement has.

    See :class:`nova_ironic_ring.core.values.ports.Placement`.
    """

    def __init__(self, driver: upstream.NovaIronicDriver | None = None
                 ) -> None:
        """Choose the client.

        :param driver: the driver whose manager has it; None outside of a
            nova-compute
        """
        self._driver = driver

    @property
    def _client(self) -> report.SchedulerReportClient:
        if self._driver is None:
            upstream.limit_new_sessions()
            return report.report_client_singleton()
        return upstream.placement(self._driver)

    def _ask(self, send: Callable[..., requests.Response], url: str,
             *accepted: int, **more: Any) -> requests.Response:
        """Send a request to Placement.

        Nova's client has methods for each purpose, of which many return None,
        or do nothing, where Placement cannot be reached or refuses.

        :param send: the client's method for that kind of request
        :param url: the path
        :param accepted: the status codes of refusals that the caller knows
        :param more: the ``data`` that are written
        :raises RefusedError: if Placement refuses in another way
        :raises keystoneauth1.exceptions.ClientException: if it cannot be
            reached, or does not answer
        """
        answer = send(url, version=_VERSION, **more)
        status = answer.status_code
        # What stands before Placement answers with these codes as well.
        if status >= 400 and (status not in accepted or (
                f'"status": {status}' not in answer.text)):
            raise RefusedError(
                url=url, status=status, text=answer.text[:_MOST_TEXT])
        return answer

    def consumers(self, node: str) -> frozenset[str]:
        return self._consumers(node) or frozenset()

    def _consumers(self, node: str) -> frozenset[str] | None:
        """Read who has allocations of a node; None if it has no provider."""
        answer = self._ask(
            self._client.get, f'/resource_providers/{node}/allocations', 404)
        return None if answer.status_code == 404 else frozenset(
            answer.json()['allocations'])

    def known(self) -> frozenset[str]:
        return self._uuids()

    def disabled(self) -> frozenset[str]:
        return self._uuids(f'?required={_DISABLED}')

    def in_use(self, nodes: Collection[str]) -> frozenset[str]:
        return frozenset(
            node for node, consumers
            in self._all_consumers(set(nodes) - self._with_room(nodes))
            if consumers)

    def _with_room(self, nodes: Collection[str]) -> frozenset[str]:
        """Name nodes of which nothing is allocated, as far as is seen at once.

        A node has one unit of its resource class, and each allocation has one
        of it. So one request finds all free nodes that have the same classes
        as one of them. An allocation of nothing but another class, which
        provider.yaml adds to some of the nodes, may not be seen until the node
        is deployed, and so reserved.

        :param nodes: their UUIDs; few are not looked at, nor nodes whose
            classes only few others have
        """
        found, asked, left = frozenset[str](), set[str](), set(nodes)
        # By chance, classes that many nodes have come first. An owner of nodes
        # chooses their classes, and can choose their UUIDs.
        misses, samples = 0, sorted(left)
        random.shuffle(samples)
        for sample in samples:
            if misses == _MISSES or len(left) <= _MISSES:
                break
            if sample not in left:
                continue
            left.discard(sample)
            misses += 1
            try:
                wanted = ','.join(
                    f'{each}:1' for each in sorted(self._classes(sample)))
                if not wanted or wanted in asked:
                    continue
                asked.add(wanted)
                free = self._uuids(f'?resources={wanted}')
            except Exception as error:
                LOG.debug('Cannot list the free nodes, and ask for each: '
                          '%s', error)
                break
            if left & free:
                misses = 0
            found |= free
            left -= free
        return found

    def _classes(self, node: str) -> Collection[str]:
        """Name the classes of a node's inventory; none without a provider."""
        answer = self._ask(
            self._client.get, f'/resource_providers/{node}/inventories', 404)
        return answer.json().get('inventories', ())

    def unused(self, nodes: Collection[str]) -> frozenset[str]:
        free = self._with_room(nodes).intersection(nodes)
        return free | frozenset(
            node for node, consumers
            in self._all_consumers(set(nodes) - free)
            if consumers is not None and not consumers)

    def _all_consumers(self, nodes: Collection[str]
                       ) -> Iterator[tuple[str, frozenset[str] | None]]:
        """Read who has allocations of nodes, of several at a time."""
        wanted = sorted(nodes)
        return zip(wanted, several.run(self._consumers, wanted))

    def tell_status(self, nodes: Collection[str], is_enabled: bool) -> None:
        # Nova's own method compares with its client's cache, and fails where
        # that does not have the provider, as of a node that is not tracked.
        with limits.haste():
            several.run(functools.partial(self._tell_status, is_enabled),
                        sorted(nodes))

    def _tell_status(self, is_enabled: bool, node: str) -> None:
        try:
            _insist(node, lambda: self._change_status(node, is_enabled))
        except Exception as error:
            LOG.warning(
                'Cannot update node %(node)s in Placement, whose service '
                'is %(state)s: %(error)s. The next update of the node does.',
                {'node': node, 'error': error,
                 'state': 'enabled' if is_enabled else 'disabled'})

    def _change_status(self, node: str, is_enabled: bool) -> bool:
        """Add or remove the trait of a disabled service.

        :returns: False if somebody else has changed the provider meanwhile
        """
        url = f'/resource_providers/{node}/traits'
        said = self._ask(self._client.get, url).json()
        traits = set(said['traits'])
        wanted = traits - {_DISABLED} | (set() if is_enabled else {_DISABLED})
        if wanted == traits:
            return True
        if self._ask(self._client.put, url, 409, data={
                **said, 'traits': sorted(wanted)}).status_code == 409:
            return False
        # What Nova's client may have read before is old now.
        self.forget_provider(node)
        return True

    def _uuids(self, query: str = '') -> frozenset[str]:
        """Name resource providers."""
        found = self._ask(self._client.get, f'/resource_providers{query}')
        return frozenset(
            str(each['uuid']) for each in found.json()['resource_providers'])

    def _allocated(self, instance: str) -> Mapping[str, Any]:
        """Read the allocations of an instance, as Placement has them."""
        return self._ask(self._client.get, f'/allocations/{instance}').json()

    def providers_of(self, instance: str) -> Collection[str]:
        return frozenset(self._allocated(instance)['allocations'])

    def providers_of_all(self, instances: Collection[str]) -> frozenset[str]:
        """Read the providers that have allocations of instances.

        :param instances: their UUIDs
        """
        return frozenset().union(*several.run(self.providers_of, instances))

    def free(self, instance: str) -> None:
        self._ask(self._client.delete, f'/allocations/{instance}', 404)

    def has_provider(self, provider: str) -> bool:
        return self._ask(
            self._client.get, f'/resource_providers/{provider}', 404
        ).status_code != 404

    def forget_provider(self, node: str) -> None:
        self._client.invalidate_resource_provider(node)

    def is_changed(self, provider: str, generation: int) -> bool:
        """Return whether a provider has changed since it was read.

        :param provider: its UUID
        :param generation: the generation that was read
        :returns: False as well if Placement refuses to tell: Placement refuses
            what is written to an old one
        """
        try:
            return self._read(provider)['generation'] != generation
        except RefusedError:
            return False

    def move(self, instance: str, sources: Collection[str],
             target: str) -> bool:
        context = nova_context.get_admin_context()
        found = self._allocated(instance)
        having = found['allocations']
        if not having or set(having) == {target}:
            return True
        resting = set(having)
        if len(resting) > 1 and evacuations.was_asked(context, instance):
            # The scheduler has reserved a place that it does not go to.
            resting = resting & {target} or resting & set(sources)
        if len(resting) != 1 or not resting <= {target, *sources}:
            return False
        source = resting.pop()
        resources = having[source]['resources']

        def put(wanted: _Resources) -> bool:
            # With the consumer's generation: of two that have read the same,
            # one is refused. An answer that is lost says the same as a
            # refusal.
            return bool(self._client.put_allocations(context, instance, {
                **found, 'allocations': {target: {'resources': wanted}}})
            ) or self.providers_of(instance) == {target}
        try:
            if put(resources):
                return True
            if len(resources) == 1:
                return False
            kept = self._fitting(resources, source, target)
            if kept == resources or not put(kept):
                return False
        except exception.AllocationUpdateFailed:
            return False
        LOG.warning('Instance %(instance)s has come to resource provider '
                    '%(target)s, which has no room for what it had besides '
                    'its node: it has given up its allocation of %(classes)s. '
                    'Give all services of a ring the same provider.yaml.', {
                        'instance': instance, 'target': target,
                        'classes': ', '.join(
                            sorted(resources.keys() - kept.keys()))})
        return True

    def _fitting(self, resources: _Resources, source: str, target: str
                 ) -> _Resources:
        """Leave out what a provider has no room for, but for the node itself.

        :param resources: what an instance has, by class
        :param source: the UUID of the provider that it has it of
        :param target: the UUID of the other one
        """
        # One of the two is a pool, whose name says its class.
        names = [self._read(uuid)['name'] for uuid in (source, target)]
        inventories = self._read(target, 'inventories')['inventories']
        usages = self._read(target, 'usages')['usages']

        def has_room(name: str) -> bool:
            said = inventories.get(name)
            return said is not None and usages.get(name, 0) + (
                resources[name]) <= said['allocation_ratio'] * (
                    said['total'] - said['reserved'])
        return {name: amount for name, amount in resources.items()
                if any(pools.is_class_of(each, name) for each in names)
                or has_room(name)}

    def used_classes(self, provider: str) -> frozenset[str]:
        """Name the classes of which something is allocated of a provider.

        :param provider: its UUID
        """
        return frozenset(
            name for name, amount
            in self._read(provider, 'usages')['usages'].items() if amount)

    def _read(self, provider: str, more: str = '') -> Mapping[str, Any]:
        """Read what Placement itself says of a provider.

        :param provider: its UUID
        :param more: what of it; nothing for its record
        """
        return self._ask(self._client.get, '/'.join(
            ['/resource_providers', provider, *filter(None, [more])])).json()

    def keep_only(self, instance: str, provider: str) -> None:
        """Free what an instance has reserved elsewhere than on a provider.

        :param instance: its UUID
        :param provider: the UUID of the provider; where nothing is reserved
            there, nothing is freed
        :raises nova.exception.AllocationUpdateFailed: if another is faster,
            or Placement refuses
        """
        context = nova_context.get_admin_context()
        found = self._allocated(instance)
        having = found['allocations']
        if provider in having and len(having) > 1 and (
                not self._client.put_allocations(context, instance, {
                    **found, 'allocations': {provider: {
                        'resources': having[provider]['resources']}}})):
            raise exception.AllocationUpdateFailed(
                consumer_uuid=instance, error='Placement refuses it')

    def write(self, pool: pools.Pool, found: pools.Inventory) -> None:
        self._rewrite(pool.uuid, lambda known: inventory(pool, found, known),
                      pool.name)

    def reserve_all(self, pool: str) -> None:
        self._rewrite(pools.uuid_of(pool), lambda known: inventory(
            pools.Pool(pool, is_hidden=True), pools.Inventory(), known))

    def reread(self, place: str) -> None:
        upstream.in_turn_with_tracker(
            lambda: self.forget_provider(pools.provider(place)))

    def make_room(self, place: str, pool: str) -> None:
        def make(known: _Known) -> _Known:
            # A node has one unit, whatever has it: if that is this instance, a
            # former move was interrupted, and nothing is needed. An allocation
            # that comes after this has Placement refuse what is written.
            used = (len(self.consumers(pools.provider(place)))
                    if pools.is_pool(place) else 0)
            return {name: _with_room(said, used)
                    for name, said in known.items()
                    if pools.is_class_of(pool, name)}
        self._rewrite(pools.provider(place), make)

    def _rewrite(self, provider: str, make: Callable[[_Known], _Known],
                 name: str | None = None) -> None:
        """Change an inventory.

        :param provider: the UUID of the provider
        :param make: makes it of what Placement has; the classes that it leaves
            out stay as they are, for Placement takes all of them or none
        :param name: the name of the provider, which is made if there is none;
            None to leave out one that is gone: Nova may just have deleted it,
            with the record of its service, and then nothing would delete it
            again
        :raises nova.exception.ResourceProviderUpdateConflict: if others write
            it all the time
        """
        def rewrite() -> None:
            try:
                _insist(provider,
                        lambda: self._try_to_rewrite(provider, make, name))
            finally:
                # What Nova's client may have read before is old now, even if
                # only the answer of Placement was lost.
                self.forget_provider(provider)
        upstream.in_turn_with_tracker(rewrite)

    def _try_to_rewrite(self, provider: str, make: Callable[[_Known], _Known],
                        name: str | None) -> bool:
        """Do as :meth:`_rewrite` does, once.

        :returns: False if that is to be done again: somebody else has changed
            the provider meanwhile, or it was missing
        """
        url = f'/resource_providers/{provider}/inventories'
        answer = self._ask(self._client.get, url, 404)
        if answer.status_code == 404 and name is not None:
            self._ask(self._client.post, '/resource_providers', 409,
                      data={'uuid': provider, 'name': name})
            return False
        if answer.status_code != 404:
            said = answer.json()
            known = said['inventories']
            wanted = {**known, **make(known)}
            if wanted == known:
                return True
            for each in wanted.keys() - known.keys():
                self._ask(self._client.put, f'/resource_classes/{each}',
                          data=None)
            answer = self._ask(self._client.put, url, 404, 409, data={
                **said, 'inventories': wanted})
        return answer.status_code < 400 or (
            answer.status_code == 404 and name is None)

    def drop_provider(self, node: str) -> bool:
        def drop() -> bool:
            try:
                # Placement keeps one that something is allocated of.
                answer = self._ask(
                    self._client.delete, f'/resource_providers/{node}',
                    404, 409)
                return answer.status_code != 409
            finally:
                self.forget_provider(node)
        return upstream.in_turn_with_tracker(drop)

    def delete_provider(self, node: str) -> None:
        for consumer in self.consumers(node):
            self.free(consumer)
        if not self.drop_provider(node):
            raise exception.ResourceProviderInUse()


def _insist(provider: str, attempt: Callable[[], bool]) -> None:
    """Try to change a provider that others may change as well.

    :param provider: the UUID of the provider
    :param attempt: tries once, and returns False if another was faster
    :raises nova.exception.ResourceProviderUpdateConflict: if others change it
        all the time
    """
    if not any(attempt() for _ in range(_ATTEMPTS)):
        raise exception.ResourceProviderUpdateConflict(
            uuid=provider, generation=0, error='')


def _with_room(said: Mapping[str, Any], used: int) -> Mapping[str, Any]:
    """Return an inventory that has room for one more.

    :param said: what Placement has
    :param used: how much of it is allocated
    """
    found = pools.Inventory(
        said['total'], said.get('reserved', 0)).with_room(used)
    return {**said, 'total': found.total, 'reserved': found.reserved}


def inventory(pool: pools.Pool, counted: pools.Inventory,
              known: _Known) -> _Known:
    """Return the inventory of a pool as Placement wants it.

    It has the class by which the pool's nodes are counted, and no other: what
    others have put there, such as a provider.yaml, is not the driver's.

    :param pool: the pool
    :param counted: what is counted
    :param known: the inventory that Placement has of it; where nodes are
        hidden, what it says of their number is all that is known
    """
    own = {name: said for name, said in known.items()
           if pools.is_class_of(pool.name, name)}
    if pool.is_hidden and own:
        return {name: {**said, 'reserved': said['total']}
                for name, said in own.items()}
    names = list(own) if pool.kind is None else [pool.kind.resource_class]
    return {name: {
        'total': counted.total, 'reserved': counted.reserved, 'min_unit': 1,
        'max_unit': 1, 'step_size': 1, 'allocation_ratio': 1.0}
        for name in names}
