# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Changes a deployment, and waits for what the services make of it."""

from collections.abc import Callable, Sequence
import time

from nova.compute import api
import nova.conf
from nova import exception
from nova import objects

from nova_ironic_ring.adapters import records
from nova_ironic_ring.command import checks
from nova_ironic_ring.command import errors
from nova_ironic_ring.command import snapshot
from nova_ironic_ring.command import source
from nova_ironic_ring.core import membership
from nova_ironic_ring.core import model
from nova_ironic_ring.core import ports
from nova_ironic_ring.core import vanished

CONF = nova.conf.CONF

_State = membership.State

_POLL = 2
_BAR = 30


class Worker:
    """Does what the commands are for.

    Each change has a ``plan_`` method, which says what would be done, a line
    each, and raises what is wrong with it.
    """

    def __init__(self, where: source.Source, say: Callable[[str], None],
                 progress: Callable[[str], None]) -> None:
        """Choose the deployment.

        :param where: the deployment
        :param say: prints a line
        :param progress: prints a line in the place of the last one, where it
            can
        """
        self._source = where
        self._say = say
        self._progress = progress

    # Drain and undrain

    def plan_drain(self, host: str, instances: bool) -> list[str]:
        """Say what draining a service would do.

        :param host: its name
        :param instances: whether its instances have to go as well
        :raises ValueError: if there is no such service
        :raises CommandError: if it cannot come to an end
        """
        seen = self._source.read()
        service = seen.service(host)
        name = model.canonical(host)
        count = _free(seen, name)
        held = _held(seen, name)
        rest = _others(seen, name)
        if not rest and count:
            raise errors.CommandError(
                f'No other member of the ring of {host} lives: nobody could '
                f'take its {count} free nodes.')
        if instances and held and (
                name not in seen.profiles
                or seen.profiles[name].mobility != 'follow'):
            raise errors.CommandError(
                f'The {held} instances of {host} stay with it: set '
                '[ironic_ring] instance_mobility = follow on all services and '
                'send SIGHUP, or leave out --instances.')
        steps = [] if service.record.disabled else [
            f'disable the nova-compute on {service.record.host}']
        if count:
            steps.append(f'wait until its {count} free nodes are with others')
        if instances and held:
            steps.append(f'wait until its {held} instances are with others')
        return steps

    def drain(self, host: str, reason: str, instances: bool,
              timeout: float) -> bool:
        """Disable a service and wait.

        :param host: its name
        :param reason: why
        :param instances: whether to wait for its instances
        :param timeout: how long to wait, in seconds
        :returns: whether it has come to an end
        """
        # Who has disabled it before has had a reason.
        if not self._source.read().service(host).record.disabled:
            self._update(host, disabled=True, disabled_reason=reason)
        name = model.canonical(host)
        return self._wait(
            f'nodes of {host}',
            lambda seen: _free(seen, name) + (
                _held(seen, name) if instances else 0), timeout)

    def plan_undrain(self, host: str) -> list[str]:
        """Say what enabling a service would do.

        :param host: its name
        :raises ValueError: if there is no such service
        :raises CommandError: if it does not live
        """
        seen = self._source.read()
        service = seen.service(host)
        if seen.state(host) in (_State.ABSENT, _State.FORCED_DOWN):
            raise errors.CommandError(
                f'The nova-compute on {host} is {seen.word(host)}: '
                'start it, and force it up, before it is enabled.')
        if not service.record.disabled:
            return []
        return [f'enable the nova-compute on {service.record.host}',
                'wait until it has its share of free nodes']

    def undrain(self, host: str, timeout: float) -> bool:
        """Enable a service and wait.

        :param host: its name
        :param timeout: how long to wait, in seconds
        :returns: whether it has come to an end
        """
        self._update(host, disabled=False, disabled_reason=None)
        name = model.canonical(host)
        return self._wait(f'nodes for {host}',
                          lambda seen: _missing(seen, name), timeout)

    # Failover and move

    def plan_failover(self, host: str, alive: bool) -> list[str]:
        """Say what forcing a service down would do.

        :param host: its name
        :param alive: whether to do so also if it looks alive
        :raises ValueError: if there is no such service
        :raises CommandError: if nobody would take its instances, or it looks
            alive
        """
        seen = self._source.read()
        service = seen.service(host)
        name = model.canonical(host)
        takers = _others(seen, name)
        held = _held(seen, name)
        if not takers and held + _free(seen, name):
            raise errors.CommandError(
                f'No other member of the ring of {host} lives: nobody could '
                'take over from it.')
        if seen.state(host).gives and not alive:
            raise errors.CommandError(
                f'The nova-compute on {host} is alive, or has died within the '
                f'last {seen.down_time:g} s: stop it, or fence its host, and '
                'add --alive if you are sure of that.')
        unable = [taker for taker in sorted(takers)
                  if taker not in seen.profiles
                  or seen.profiles[taker].mobility == 'pinned']
        if held and unable:
            raise errors.CommandError(
                f'{", ".join(unable)} would not take over instances: set '
                '[ironic_ring] instance_mobility = failover there, and send '
                'SIGHUP; or [DEFAULT] compute_driver = '
                'ironic_ring.IronicRingDriver, and restart it.')
        steps = []
        if not service.record.forced_down:
            steps.append('force the nova-compute on '
                         f'{service.record.host} down')
        if held + _free(seen, name):
            steps.append(f'wait until its {held} instances and '
                         f'{_free(seen, name)} free nodes are with others')
        return steps

    def failover(self, host: str, timeout: float) -> bool:
        """Force a service down and wait.

        :param host: its name
        :param timeout: how long to wait, in seconds
        :returns: whether it has come to an end
        """
        self._update(host, forced_down=True)
        name = model.canonical(host)
        done = self._wait(
            f'nodes and instances of {host}',
            lambda seen: _free(seen, name) + _held(seen, name), timeout)
        if done:
            self._say(f'When {host} is well again: "openstack compute service '
                      f'set --up {host} nova-compute".')
        return done

    def plan_move(self, node: str, host: str) -> list[str]:
        """Say what moving a node would do.

        :param node: its name or UUID
        :param host: the name of the service that is to have it
        :raises ValueError: if there is no such node or service
        :raises CommandError: if it cannot be moved
        """
        seen = self._source.read()
        found, instance = self._movable(seen, node)
        target = seen.service(host)
        if seen.state(host) is not _State.MEMBER:
            raise errors.CommandError(
                f'The nova-compute on {host} is {seen.word(host)}: it '
                'could not look after the instance.')
        key = seen.key(model.canonical(host))
        if target.cell != instance.cell or key is None or (
                not key.serves(found)):
            raise errors.CommandError(
                f'The nova-compute on {host} does not serve node '
                f'{found.uuid}: it is in another cell, group or shard.')
        if model.canonical(host) == model.canonical(
                instance.host or ''):
            return []
        following = [name for name, each in seen.profiles.items()
                     if each.mobility == 'follow' and name in seen.hosts
                     and seen.key(name) == key]
        if following:
            raise errors.CommandError(
                'With [ironic_ring] instance_mobility = follow, as on '
                f'{following[0]}, instances are where the ring maps them, and '
                'would go back.')
        return [f'give instance {instance.uuid} ({instance.name}) of '
                f'{instance.host} to {target.record.host}',
                f'wait until {target.record.host} has node {found.uuid}']

    def _movable(self, seen: snapshot.Snapshot, node: str
                 ) -> tuple[snapshot.Node, snapshot.Instance]:
        found = seen.find(node)
        instance = seen.instance_on(found)
        if instance is None or instance.host is None:
            raise errors.CommandError(
                f'Node {found.uuid} has no instance: free nodes are where the '
                'ring maps them, and would go back.')
        if instance.node != found.uuid:
            raise errors.CommandError(
                f'Ironic has instance {instance.uuid} on node {found.uuid}, '
                f'and Nova has it on {instance.node}: see who has set the '
                'instance_uuid of the node.')
        if not instance.is_idle:
            raise errors.CommandError(
                f'Something is being done with instance {instance.uuid}: '
                'wait until it is over; if its service is dead, run '
                f'"nova-ironic-ring failover {instance.host}".')
        return found, instance

    def move(self, node: str, host: str, timeout: float) -> bool:
        """Give the instance on a node to another service, and wait.

        :param node: its name or UUID
        :param host: the name of the service that is to have it
        :param timeout: how long to wait, in seconds
        :returns: whether it has come to an end
        :raises CommandError: if something is being done with it by now
        """
        seen = self._source.read()
        found, instance = self._movable(seen, node)
        target = seen.service(host).record.host
        with self._source.cell_of(instance.cell) as context:
            nova_records = records.Nova(context, target)
            if nova_records.other_drivers([str(instance.host)]):
                raise errors.CommandError(
                    f'{instance.host} has nodes that are not of Ironic: '
                    'nothing is taken from it.')
            if not nova_records.set_instance_host(
                    instance.uuid, ports.Expected(
                        str(instance.host), found.uuid, is_idle=True)):
                raise errors.CommandError(
                    f'Something is being done with instance {instance.uuid} '
                    'by now: try again.')
        name = model.canonical(host)
        return self._wait(f'nodes for {host}', lambda now: int(
            found.uuid not in now.rows
            or model.canonical(now.rows[found.uuid].owner) != name),
            timeout)

    # Clean

    def leftovers(self, kind: str) -> list[str]:
        """Name the nodes that something is left of.

        :param kind: ``rows`` or ``providers``
        :raises CommandError: if they are too many to believe it
        """
        seen = self._source.read(providers=True)
        found = sorted(
            finding.subject for finding in checks.find(seen)
            if finding.kind == kind and finding.subject not in seen.nodes)
        limit = CONF.ironic_ring.vanished_nodes_limit
        if kind == 'rows':
            for owner in {seen.rows[node].owner for node in found}:
                self._believe(
                    sum(seen.rows[node].owner == owner for node in found),
                    sum(row.owner == owner for row in seen.rows.values()),
                    f'nodes of {owner}', limit)
        else:
            self._believe(len(found), len(seen.providers or ()),
                          'nodes that have a resource provider', limit)
        return found

    def _believe(self, missing: int, total: int, what: str, limit: int
                 ) -> None:
        """See that not too many nodes have vanished, as the services do."""
        guard = vanished.look(vanished.Guard(), vanished.Missing(
            list(map(str, range(missing))), total, lambda node: True),
            vanished.Limits(limit, 0), 0)
        if guard.is_closed:
            raise errors.CommandError(
                f'Ironic does not show {missing} of the {total} {what}: see '
                "whether Nova's account in [ironic] may see all nodes. If "
                'they were deleted on purpose, set [ironic_ring] '
                'vanished_nodes_limit = 100 in the nova.conf that this '
                'command reads.')

    def clean(self, kind: str, leftovers: Sequence[str]) -> bool:
        """Remove what is left of nodes.

        :param kind: ``rows`` or ``providers``
        :param leftovers: the UUIDs of the nodes
        :returns: whether all of it is gone
        """
        seen = self._source.read(providers=True)
        done = True
        for node in leftovers:
            try:
                # It may have been enrolled again meanwhile.
                if self._source.has_node(node):
                    raise errors.CommandError(
                        f'Node {node} is in Ironic: nothing of it is '
                        'removed.')
                if kind == 'providers':
                    self._source.delete_provider(node)
                # Or a service may have been faster.
                elif node in seen.rows:
                    self._remove_row(seen, node)
            except (errors.CommandError, exception.NovaException) as error:
                self._say(str(error))
                done = False
        return done

    def _remove_row(self, seen: snapshot.Snapshot, node: str) -> None:
        # Without the record, nobody would look for the provider again.
        if node in (seen.providers or ()):
            self._source.delete_provider(node)
        with self._source.cell_of(seen.rows[node].cell) as context:
            for row in objects.ComputeNodeList.get_all_by_uuids(
                    context, [node]):
                row.destroy()

    # Helpers

    def _update(self, host: str, **changes: object) -> None:
        """Change the record of a service, as Nova's API does it.

        :raises CommandError: if Nova refuses
        """
        service = self._source.read().service(host)
        with self._source.cell_of(service.cell) as context:
            record = objects.Service.get_by_compute_host(
                context, service.record.host)
            record.update(changes)
            if not record.obj_what_changed():
                return
            api.HostAPI().service_update(context, record)

    def _wait(self, what: str, left: Callable[[snapshot.Snapshot], int],
              timeout: float) -> bool:
        """Wait until nothing is left to wait for, and show how far it is."""
        start = time.monotonic()
        most = 0
        while True:
            try:
                count = left(self._source.read())
            except errors.CommandError as error:
                # What was begun goes on without this command.
                if time.monotonic() - start > timeout:
                    raise
                self._say(str(error))
                time.sleep(_POLL)
                continue
            most = max(most, count)
            filled = _BAR if not count else _BAR * (most - count) // most
            bar = '#' * filled + '.' * (_BAR - filled)
            self._progress(f'[{bar}] {time.monotonic() - start:3.0f} s, '
                           f'{count} {what} to wait for')
            if not count:
                return True
            if time.monotonic() - start > timeout:
                self._say(f'This has not come about in {timeout:g} s, and '
                          'goes on: see "nova-ironic-ring show --watch" and '
                          '"nova-ironic-ring check".')
                return False
            time.sleep(_POLL)


def _free(seen: snapshot.Snapshot, host: str) -> int:
    """Count the free nodes that are recorded for a service."""
    return sum(
        model.canonical(row.owner) == host and row.node in seen.nodes
        and seen.nodes[row.node].instance is None
        for row in seen.rows.values())


def _held(seen: snapshot.Snapshot, host: str) -> int:
    """Count the instances on nodes that belong to a service."""
    return sum(model.canonical(instance.host or '') == host
               for node in seen.nodes.values()
               if (instance := seen.instance_on(node)))


def _others(seen: snapshot.Snapshot, host: str) -> frozenset[str]:
    """Name the other members of a service's ring."""
    key = seen.key(host)
    return seen.ring(key).members - {host} if key else frozenset()


def _missing(seen: snapshot.Snapshot, host: str) -> int:
    """Count the free nodes that a service should have and has not.

    Without a node at all it is not known to its peers, and will be given some.
    """
    key = seen.key(host)
    if key is None or host not in seen.ring(key).members:
        return 1
    current = seen.ring(key)
    return sum(
        node.instance is None and current.owner(node.uuid) == host
        and (node.uuid not in seen.rows or model.canonical(
            seen.rows[node.uuid].owner) != host)
        for node in seen.served(key))
