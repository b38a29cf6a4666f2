# SPDX-License-Identifier: Apache-2.0

"""Nova's records behind the port, read and written through conductor."""

from collections.abc import Callable, Collection, Iterable, Iterator
from collections.abc import Mapping, Sequence
import contextlib
import dataclasses

from nova.compute import task_states
from nova.compute import vm_states
import nova.conf
from nova import context as nova_context
from nova import exception
from nova import objects
from nova.objects import fields
from nova import servicegroup
from nova import utils
from oslo_log import log as logging
import oslo_messaging
from oslo_utils import excutils
from oslo_utils import timeutils

from nova_ironic_ring.adapters.nova import arrivals
from nova_ironic_ring.adapters.nova import marks
from nova_ironic_ring.adapters.nova import stats
from nova_ironic_ring.adapters import several
from nova_ironic_ring.core.deciding import failures
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.values import member
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import ports

LOG = logging.getLogger(__name__)
CONF = nova.conf.CONF

# So many instances are read at once: with the most user data that Nova takes,
# 64 KiB each, the message has 7 MiB. RabbitMQ 4 refuses one of 16 MiB.
_PAGE = 100
# The same of rows, which have 8 KiB at most: see core/values/bounds.py.
_ROWS = 500
# What no service has claimed a node for yet.
_UNCLAIMED = (
    {'vm_state': vm_states.BUILDING},
    {'vm_state': vm_states.SHELVED_OFFLOADED,
     'task_state': [task_states.UNSHELVING, task_states.SPAWNING]})


class Nova:
    """Nova's records, as one service reads and writes them.

    See :class:`~nova_ironic_ring.core.values.ports.Nova`.
    """

    def __init__(self, context: nova_context.RequestContext | None = None,
                 host: str | None = None) -> None:
        """Choose the database and the service.

        :param context: where to read and write; None for the cell of this
            process
        :param host: the name of the service that is given instances; None for
            this one
        """
        self._context = context
        self._host = host
        self._is_up = liveness()
        #: A row of each service without a member record, by canonical name;
        #: None of one that had none.
        self._samples: dict[str, str | None] = {}
        #: The nodes on which builds of other services have failed, by their
        #: latest reports; by the UUID of the node.
        self.failures: failures.Failures = {}
        #: The same of this service itself, as its record says, and those that
        #: the record is to say.
        self.own_failures: failures.Failures = {}
        self.failures_to_say: Callable[[], failures.Failures] = dict
        #: The rows of this service, as they were read last.
        self.own_rows: list[objects.ComputeNode] = []
        #: The UUID of the first of them, which Nova mirrors aggregates to.
        self.first: str | None = None

    @property
    def context(self) -> nova_context.RequestContext:
        """A context with the rights of an administrator."""
        return self._context or nova_context.get_admin_context()

    def services(self) -> list[model.Service]:
        found = objects.ServiceList.get_by_binary(
            self.context, 'nova-compute', include_disabled=True)
        # The own one says what this service needs after a restart.
        rows = self._records({
            self._host or CONF.host, *(each.host for each in found)})
        me = model.canonical(self._host or CONF.host)
        self.failures = failures.merged(*(
            stats.read_failures(row.stats, row.host)
            for host, row in rows.items() if host != me))
        if me in rows:
            self.own_failures = stats.read_failures(
                rows[me].stats, rows[me].host)
        said = _said(rows)
        ironic = said.keys() | self._with_nodes([
            each for each in found if model.canonical(each.host) not in said])
        return [dataclasses.replace(each, is_ironic=each.name in ironic
                                    ).saying(said.get(each.name))
                for each in map(self._service, found)]

    def members(self, hosts: Collection[str]) -> dict[str, model.Member]:
        return _said(self._records(hosts))

    def say_member(self, said: ports.Saying) -> None:
        for row in self._records([said.current.host]).values():
            row.stats = self.member_stats(said)
            row.save()

    def member_stats(self, said: ports.Saying) -> dict[str, str]:
        """Return the statistics of the member record of this service.

        :param said: what the record is to say
        """
        return stats.say_member(said) | stats.say_failures(
            said.current.host, self.failures_to_say())

    def service(self, host: str) -> model.Service | None:
        try:
            return self._service(
                objects.Service.get_by_compute_host(self.context, host))
        except exception.NotFound:
            return None

    def rows_of(self, host: str) -> dict[str, model.Row]:
        rows = self._rows_of(host)
        if model.canonical(host) == model.canonical(self._host or CONF.host):
            self.own_rows = rows
            self.first = rows[0].uuid if rows else None
        return {row.uuid: row_of(row) for row in rows
                if row.hypervisor_type == fields.HVType.IRONIC
                and not member.is_member(row.hypervisor_hostname)}

    def rows(self, nodes: Collection[str]) -> dict[str, model.Row]:
        return {row.uuid: row_of(row)
                for row in _find_rows(self.context, nodes)}

    def pools_of(self, host: str) -> frozenset[str]:
        return frozenset(
            row.hypervisor_hostname for row in self._rows_of(host)
            if pools.is_of(host, row.hypervisor_hostname))

    def instances_of(self, host: str) -> frozenset[str]:
        return frozenset(
            objects.InstanceList.get_uuids_by_host(self.context, host))

    def instances(self, uuids: Iterable[str]) -> dict[str, model.Instance]:
        found = {instance.uuid: instance_of(instance, False)
                 for instance in find_instances(self.context, uuids)}
        # Only one without a service may have been given up, and these are few.
        found |= {instance.uuid: instance_of(
            instance, marks.given_up_with(instance) is not None)
            for instance in find_instances(
                self.context, [uuid for uuid, each in found.items()
                               if each.host is None], ['system_metadata'])}
        return found

    def deleted_instances(self, uuids: Iterable[str]
                          ) -> dict[str, model.Instance]:
        context = self.context
        with utils.temporary_mutation(context, read_deleted='yes'):
            return {
                instance.uuid: instance_of(instance, False)
                for page in _pages(uuids, _PAGE)
                for instance in objects.InstanceList.get_by_filters(
                    context, {'uuid': page, 'deleted': True,
                              'soft_deleted': False}, expected_attrs=[])}

    def sizes(self, uuids: Iterable[str]) -> dict[str, pools.Size]:
        """Read how large the flavors of instances are.

        :param uuids: their UUIDs
        :returns: by UUID, of those that Nova has not deleted
        """
        wanted = sorted(uuids)
        if not wanted:
            return {}
        return {instance.uuid: pools.Size(
            instance.flavor.memory_mb,
            instance.flavor.root_gb + instance.flavor.ephemeral_gb,
            instance.flavor.vcpus)
            for instance in find_instances(self.context, wanted, ['flavor'])}

    def instances_on(self, node: str) -> frozenset[str]:
        # Nova takes the name for a pattern.
        return frozenset(
            instance.uuid for instance in _find_all(self.context, {
                'node': node, 'deleted': False, 'soft_deleted': True})
            if instance.node == node)

    def other_drivers(self, hosts: Iterable[str]) -> frozenset[str]:
        return frozenset(
            model.canonical(host) for host in hosts
            if any(row.hypervisor_type != fields.HVType.IRONIC
                   for row in self._rows_of(host)))

    def delete_row(self, node: str, owner: str) -> bool:
        for row in objects.ComputeNodeList.get_all_by_uuids(
                self.context, [node]):
            if row.host != owner:
                return False
            try:
                # Nova does this on condition that the host is the same still.
                row.destroy()
            except (exception.ObjectActionError, exception.NotFound):
                return False
            # The manager would find a row there that is gone.
            self.own_rows = []
            return True
        return False

    def take_rows(self, rows: Mapping[str, ports.Taking]) -> frozenset[str]:
        wanted = [row for row in _find_rows(self.context, rows)
                  if row.host == rows[row.uuid].owner]
        if not wanted:
            return frozenset()
        host = self._host or CONF.host
        service = objects.Service.get_by_compute_host(self.context, host)
        timeouts: list[Exception] = []

        def take(row: objects.ComputeNode) -> str | None:
            if timeouts:
                # Each of the others would take as long.
                return None
            # This is what Nova's tracker does with a row that it moves.
            row.host, row.service_id = host, service.id
            row.host_ip = CONF.my_ip
            row.stats = {
                **stats.cleaned(row.stats or {}), 'failed_builds': '0',
                **stats.make(
                    host, rows[row.uuid].made_of, rows[row.uuid].made_at)}
            try:
                row.save()
            except Exception as error:
                if isinstance(error, oslo_messaging.MessagingTimeout):
                    timeouts.append(error)
                LOG.warning('Cannot record node %(node)s for this service '
                            'yet; its next pass takes the node: '
                            '%(error)s', {'node': row.uuid, 'error': error})
                return None
            return row.uuid
        taken = frozenset(filter(None, several.run(take, wanted)))
        left = [row.uuid for row in wanted if row.uuid not in taken]
        try:
            return taken | {row.uuid for row in _find_rows(self.context, left)
                            if row.host == host}
        except Exception:
            # The next pass sees it.
            return taken

    def set_instance_host(self, instance: str, expected: ports.Expected
                          ) -> bool:
        found = self._read_expected(instance, expected)
        return found is not None and self._give(found, expected)

    def place_instance(self, instance: str, expected: ports.Expected,
                       place: str) -> bool:
        try:
            row = objects.ComputeNode.get_by_uuid(
                self.context, pools.provider(place))
        except exception.NotFound:
            return False
        found = self._read_expected(instance, expected)
        if row.host != (self._host or CONF.host) or found is None:
            return False
        # Nova wants all three together.
        found.node = place
        found.compute_id = row.id
        return self._give(found, expected)

    def _read_expected(self, instance: str, expected: ports.Expected
                       ) -> objects.Instance | None:
        """Read an instance; None if it is not where it is expected."""
        try:
            found = objects.Instance.get_by_uuid(
                self.context, instance, expected_attrs=[])
        except exception.InstanceNotFound:
            return None
        return found if (found.host, found.node) == (
            expected.host, expected.node) else None

    def _give(self, instance: objects.Instance, expected: ports.Expected
              ) -> bool:
        """Save an instance as this service's."""
        instance.host = self._host or CONF.host
        return self._write(
            instance,
            lambda: instance.save(expected_task_state=[expected.task]),
            lambda now: (now.host, now.node) == (
                instance.host, instance.node))

    def _write(self, instance: objects.Instance, save: Callable[[], None],
               is_done: Callable[[objects.Instance], bool]) -> bool:
        """Save an instance, and read it again if there is no answer.

        :param instance: the instance
        :param save: saves it
        :param is_done: whether what is read then is what was to be
        :returns: False if it has changed since it was read, or is deleted
        :raises Exception: if there is no answer, and what was to be is not
            there, or cannot be read: it may come yet
        """
        try:
            save()
        except (exception.InstanceNotFound, exception.InstanceUpdateConflict):
            return False
        except Exception:
            with excutils.save_and_reraise_exception() as raised:
                with contextlib.suppress(Exception):
                    raised.reraise = not is_done(objects.Instance.get_by_uuid(
                        self.context, instance.uuid, expected_attrs=[]))
        return True

    def unclaimed(self) -> dict[str, model.Instance]:
        return {
            each.uuid: instance_of(each, False) for filters in _UNCLAIMED
            for each in _find_all(
                self.context, {**filters, 'deleted': False, 'host': None})}

    def building(self) -> list[str]:
        """Return the UUIDs of all instances that are being built."""
        return [each.uuid for each in _find_all(
            self.context, {'vm_state': vm_states.BUILDING, 'deleted': False})]

    def arrived_at(self, instance: str) -> model.Arrival | None:
        return arrivals.last(self.context, instance)

    def end_build(self, instance: str, host: str | None,
                  is_claimed: bool = True) -> bool:
        try:
            found = objects.Instance.get_by_uuid(
                self.context, instance, expected_attrs=['system_metadata'])
        except exception.InstanceNotFound:
            return False
        owner = found.host and model.canonical(found.host)
        if found.vm_state != vm_states.BUILDING or owner not in (
                None, host and is_claimed and model.canonical(host)):
            return False
        # Nobody has it, and its service's record may be deleted. Nova wants
        # all three together.
        found.host = found.node = found.compute_id = None
        return self._write(
            found, lambda: marks.give_up(self.context, found, host),
            lambda now: now.host is None and now.vm_state == vm_states.ERROR)

    def end_unshelve(self, instance: str) -> bool:
        try:
            found = objects.Instance.get_by_uuid(
                self.context, instance, expected_attrs=[])
        except exception.InstanceNotFound:
            return False
        task = found.task_state
        if found.host is not None or not instance_of(
                found, False).is_unshelving:
            return False
        # As Nova does if the task has no result.
        found.task_state = None
        return self._write(
            found, lambda: found.save(
                expected_vm_state=[vm_states.SHELVED_OFFLOADED],
                expected_task_state=[task]),
            lambda now: now.host is None and now.task_state is None)

    def _records(self, hosts: Iterable[str]
                 ) -> dict[str, objects.ComputeNode]:
        """Read the member records of services, by canonical name."""
        wanted = {member.uuid_of(host): model.canonical(host)
                  for host in hosts}
        return {wanted[row.uuid]: row
                for row in _find_rows(self.context, wanted)
                # Whoever may name nodes in Ironic may choose their UUIDs.
                if model.canonical(row.host) == wanted[row.uuid]
                and member.is_member(row.hypervisor_hostname)}

    def _with_nodes(self, services: Sequence[objects.Service]
                    ) -> frozenset[str]:
        """Return the services without a member record that have ironic nodes.

        :param services: all services without one
        :returns: canonical names
        """
        # Nova's own answer has no disabled services, and counts deleted rows
        # as well: a host that has another driver by now is in it.
        left = {model.canonical(each.host): each for each in services}
        ask = getattr(objects.ServiceList, 'get_all_computes_by_hv_type', None)
        if ask is not None and any(not each.disabled for each in services):
            known = {model.canonical(each.host)
                     for each in ask(self.context, fields.HVType.IRONIC)}
            left = {name: each for name, each in left.items()
                    if each.disabled or name in known}
        rows = self._read_samples(left) if left else {}
        self._samples = {name: rows[name].uuid if name in rows else None
                         for name in left}
        return frozenset(name for name, row in rows.items()
                         if row.hypervisor_type == fields.HVType.IRONIC)

    def _read_samples(self, wanted: Mapping[str, objects.Service]
                      ) -> dict[str, objects.ComputeNode]:
        """Read a row of each service without a member record.

        :param wanted: the services, by canonical name
        :returns: by canonical name, of those that have one
        """
        known = {row: name for name, row in self._samples.items()
                 if row is not None and name in wanted}
        kept = {known[row.uuid]: row
                for row in _find_rows(self.context, known)
                if model.canonical(row.host) == known[row.uuid]}
        for name, service in wanted.items():
            # One that is disabled and does not live gets no node.
            if name in kept or service.disabled and (
                    self._samples.get(name, '') is None) and (
                    membership.is_late(self._service(service),
                                       timeutils.utcnow(True),
                                       CONF.service_down_time)):
                continue
            if rows := self._rows_of(service.host):
                kept[name] = next((
                    row for row in rows
                    if row.hypervisor_type == fields.HVType.IRONIC), rows[0])
        return kept

    def _rows_of(self, host: str) -> list[objects.ComputeNode]:
        try:
            return list(objects.ComputeNodeList.get_all_by_host(
                self.context, host))
        except exception.NotFound:
            return []

    def give_own_rows(self) -> list[objects.ComputeNode]:
        """Return the rows of this service, as they were read last.

        :returns: none if they were not read since the last call
        """
        rows, self.own_rows = self.own_rows, []
        return rows

    def _service(self, service: objects.Service) -> model.Service:
        return service_of(
            service, self._is_up(service) if self._is_up else None)


def _said(rows: Mapping[str, objects.ComputeNode]
          ) -> dict[str, model.Member]:
    """Return what services say in their member records."""
    return {name: stats.read_member(row.stats, row.host)
            for name, row in rows.items()}


def find_instances(context: nova_context.RequestContext,
                   uuids: Iterable[str], more: Sequence[str] = ()
                   ) -> Iterator[objects.Instance]:
    """Read the instances that are not deleted, or can be restored.

    :param context: with the rights of an administrator
    :param uuids: their UUIDs
    :param more: what to read of them beside their own record, as Nova names it
    """
    for page in _pages(uuids, _PAGE):
        yield from objects.InstanceList.get_by_filters(
            context, {'uuid': page, 'deleted': False, 'soft_deleted': True},
            expected_attrs=list(more))


def _find_all(context: nova_context.RequestContext,
              filters: Mapping[str, object]) -> Iterator[objects.Instance]:
    """Read all instances that Nova's filters let through."""
    after = None
    while True:
        page = objects.InstanceList.get_by_filters(
            context, dict(filters), limit=_PAGE, marker=after,
            expected_attrs=[])
        yield from page
        if len(page) < _PAGE:
            return
        after = page[-1].uuid


def _find_rows(context: nova_context.RequestContext, uuids: Iterable[str]
               ) -> Iterator[objects.ComputeNode]:
    """Read the rows of nodes."""
    for page in _pages(uuids, _ROWS):
        yield from objects.ComputeNodeList.get_all_by_uuids(context, page)


def _pages(uuids: Iterable[str], size: int) -> Iterator[list[str]]:
    """Divide UUIDs into as many as are asked for at once."""
    wanted = sorted(uuids)
    for first in range(0, len(wanted), size):
        yield wanted[first:first + size]


def has_heartbeats_in_database() -> bool:
    """Return whether the heartbeats of services are in the database."""
    return CONF.servicegroup_driver != 'mc'


def liveness() -> Callable[[objects.Service], bool] | None:
    """Return how to know that a service is alive, if not by the database.

    :returns: the check for each service; None if the database has the
        heartbeats
    """
    # With memcached the database has no heartbeats, and memcached has only
    # recent ones.
    if has_heartbeats_in_database():
        return None
    return servicegroup.API().service_is_up


def service_of(service: objects.Service, alive: bool | None = None
               ) -> model.Service:
    """Convert the record of a service.

    :param service: the record
    :param alive: as
        :class:`~nova_ironic_ring.core.values.model.Service` has it
    """
    return model.Service(
        service.host, service.last_seen_up or service.created_at,
        forced_down=service.forced_down, disabled=service.disabled,
        alive=alive)


def row_of(row: objects.ComputeNode) -> model.Row:
    """Convert the record of a node.

    :param row: the record
    """
    # Nova creates a row first, and saves it after Placement has the provider.
    made_of, made_at = ((None, None) if row.updated_at is None
                        else stats.read_made(row.stats, row.host))
    name = row.hypervisor_hostname
    return model.Row(row.host, name if pools.is_pool(name) else None,
                     stats.read_count(row.stats, row.host),
                     made_of, made_at, bool(row.running_vms))


def instance_of(instance: objects.Instance, is_given_up: bool
                ) -> model.Instance:
    """Convert the record of an instance.

    :param instance: the record
    :param is_given_up: as
        :class:`~nova_ironic_ring.core.values.model.Instance` has it
    """
    # The core has Nova's names for these tasks.
    assert task_states.DELETING == 'deleting'
    assert task_states.SHELVING == 'shelving'
    assert task_states.SHELVING_OFFLOADING == 'shelving_offloading'
    assert task_states.SOFT_DELETING == 'soft-deleting'
    assert task_states.SPAWNING == 'spawning'
    assert task_states.UNSHELVING == 'unshelving'
    return model.Instance(
        instance.host, instance.node,
        instance.vm_state == vm_states.BUILDING, instance.task_state,
        is_given_up, instance.vm_state == vm_states.DELETED,
        instance.vm_state == vm_states.SHELVED_OFFLOADED)
