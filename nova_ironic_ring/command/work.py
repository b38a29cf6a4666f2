# SPDX-License-Identifier: Apache-2.0

"""Drains, undrains and fails over services.

It changes Nova's records with ``writing``, and waits until the services have
followed.
"""

from collections.abc import Sequence
import functools

from nova_ironic_ring.command.access import errors
from nova_ironic_ring.command import steps
from nova_ironic_ring.command.telling import counting
from nova_ironic_ring.command.telling import snapshot
from nova_ironic_ring.core.deciding import audit
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import plural
from nova_ironic_ring.core.values import pools

_Action = steps.StepAction
_State = membership.State


class Worker(steps.Changer):
    """Plans and makes the changes of the commands.

    Each change has a ``plan_`` method, which returns its steps, and raises an
    error if it is not possible.
    """

    #: Whether to force a service down even if it is alive.
    _may_live = False
    #: Whether Ironic did not answer, and is to be asked again.
    _is_unasked = False

    # Drain and undrain

    def plan_drain(self, host: str, instances: bool
                   ) -> list[steps.PlannedStep]:
        """Plan the drain of a service.

        :param host: its name
        :param instances: whether its instances have to go as well
        :raises ValueError: if there is no such service
        :raises CommandError: if it cannot end
        """
        seen = self._seen = self._see(self._source.read())
        service = seen.service(host)
        name = model.canonical(host)
        count = self._free(seen, name)
        held = _held(seen, name)
        rest = _others(seen, name)
        if not rest and count:
            raise errors.CommandError(
                f'{_no_taker(seen, host)}: nobody could take its '
                f'{plural.of(count, "free node")}.')
        if instances and held and (
                name not in seen.profiles
                or seen.profiles[name].mobility != 'follow'):
            raise errors.CommandError(
                'The ' + plural.of(
                    held, f'instance of {host} stays',
                    f'instances of {host} stay') + ' with it: set '
                '[ironic_ring] instance_mobility = follow on all services '
                'and send SIGHUP, or leave out '
                f'--instances. {host} says what it has set with its next '
                'pass.')
        planned = [] if service.record.disabled else [steps.PlannedStep(
            _Action.DISABLE_SERVICE, service.record.host,
            f'disable the nova-compute on {service.record.host}')]
        return planned + _leaving(
            service.record.host, count, held if instances else 0)

    def drain(self, planned: Sequence[steps.PlannedStep], reason: str,
              timeout: float) -> steps.StepResults:
        """Disable a service and wait.

        :param planned: the steps
        :param reason: why
        :param timeout: how long to wait, in seconds
        """
        seen = self._change(
            planned, disabled=True,
            disabled_reason=self._trail().signed(reason))
        return self._wait(seen, planned, timeout)

    def plan_undrain(self, host: str) -> list[steps.PlannedStep]:
        """Plan to enable a service.

        :param host: its name
        :raises ValueError: if there is no such service
        :raises CommandError: if it does not live
        """
        seen = self._seen = self._see(self._source.read())
        service = seen.service(host)
        if seen.state(host) in (_State.ABSENT, _State.FORCED_DOWN):
            raise errors.CommandError(
                f'The nova-compute on {host} is {seen.word(host)}: '
                'start it, and force it up, before it is enabled.')
        if not service.record.disabled:
            return []
        name = service.record.host
        return [
            steps.PlannedStep(_Action.ENABLE_SERVICE, name,
                              f'enable the nova-compute on {name}'),
            steps.PlannedStep(_Action.WAIT_FOR_SHARE, name,
                              'wait until it has its share of free nodes')]

    def undrain(self, planned: Sequence[steps.PlannedStep], timeout: float
                ) -> steps.StepResults:
        """Enable a service and wait.

        :param planned: the steps
        :param timeout: how long to wait, in seconds
        """
        seen = self._change(planned, disabled=False, disabled_reason=None)
        return self._wait(seen, planned, timeout)

    # Failover

    def plan_failover(self, host: str, alive: bool) -> list[steps.PlannedStep]:
        """Plan to force a service down.

        :param host: its name
        :param alive: whether to do so even if it looks alive
        :raises ValueError: if there is no such service
        :raises CommandError: if nobody would take its instances, or it looks
            alive
        """
        # Ironic may be slow, or away: it is asked after the service is forced
        # down.
        seen = self._seen = self._see(self._source.read(ironic=False))
        self._may_live = alive
        service = seen.service(host)
        name = model.canonical(host)
        takers = _others(seen, name)
        held = _held(seen, name)
        try:
            free = self._free(seen, name)
        except errors.CommandError:
            # A service is forced down even while Placement is away.
            free = 0
        if not takers and held + free:
            raise errors.CommandError(
                _no_taker(seen, host) + ': nobody could take over from it.')
        if seen.state(host).lives and not alive:
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
                'SIGHUP; or [DEFAULT] '
                'compute_driver = ironic_ring.IronicRingDriver, and restart '
                'it.')
        planned = [] if service.record.forced_down else [steps.PlannedStep(
            _Action.FORCE_SERVICE_DOWN, service.record.host,
            f'force the nova-compute on {service.record.host} down')]
        return planned + _leaving(
            service.record.host, free, held)

    def failover(self, planned: Sequence[steps.PlannedStep], timeout: float
                 ) -> steps.StepResults:
        """Force a service down and wait.

        :param planned: the steps
        :param timeout: how long to wait, in seconds
        """
        seen = self._change(planned, forced_down=True)
        try:
            seen = self._source.with_nodes(seen)
        except errors.CommandError as error:
            # The services continue without this command.
            self._waiter.say(str(error))
            self._is_unasked = True
        return self._wait(seen, planned, timeout)

    # Helpers

    def _change(self, planned: Sequence[steps.PlannedStep], **changes: object
                ) -> snapshot.Snapshot:
        """Change the record of a service.

        :param planned: the steps
        :param changes: the fields of the record that change
        :returns: what was known before
        """
        seen = self._seen or self._source.read()
        for step in planned:
            if step.action not in _WAITS:
                self._update(seen, step, **changes)
        return seen

    def _wait(self, seen: snapshot.Snapshot,
              planned: Sequence[steps.PlannedStep], timeout: float
              ) -> steps.StepResults:
        """Wait until the services have followed.

        :param seen: what was known before
        :param planned: the steps
        :param timeout: how long to wait, in seconds
        """
        counts = {_Action.WAIT_FOR_NODES: self._left,
                  _Action.WAIT_FOR_INSTANCES: _kept,
                  _Action.WAIT_FOR_SHARE: self._missing}
        done = {step: steps.DONE for step in planned
                if step.action not in _WAITS}
        return {**done, **self._waiter.wait(seen, {
            step: functools.partial(
                counts[step.action], host=model.canonical(step.subject))
            for step in planned if step.action in counts}, timeout)}

    def _free(self, seen: snapshot.Snapshot, host: str) -> int:
        """Count the free nodes of a service.

        These are recorded for it, or in its pools in Placement.
        """
        return _recorded(seen, host) + counting.left(
            seen, host, self._inventories(seen, [host]))

    def _left(self, seen: snapshot.Snapshot, host: str) -> int | None:
        """Count the free nodes of a service that are not with others yet.

        A node of its pools is with others when it is in their pools.

        :returns: None while the number is not known, because Ironic alone says
            which nodes are of which kind
        """
        left = self._free(seen, host)
        if left or not any(model.canonical(row.owner) == host
                           for row in seen.pools.values()):
            return left
        others = frozenset(filter(seen.has_pools, _others(seen, host)))
        if others and self._is_unasked:
            try:
                self._standstill.ask(seen)
            except errors.CommandError:
                return None
            self._is_unasked = False
        return self._not_counted(seen, others)

    def _missing(self, seen: snapshot.Snapshot, host: str) -> int | None:
        """Count the free nodes that a service still lacks.

        Without any node its peers do not know it, and it will get some.

        :returns: None while the number is not known
        """
        # Somebody may have deleted its record since.
        key = seen.key(host) if host in seen.hosts else None
        if key is None or host not in seen.rings[key].members:
            return None
        if seen.has_pools(host):
            return self._not_counted(seen, [host])
        return self._standstill.count(seen, lambda now: sum(
            owner == host and now.nodes[uuid].instance is None
            and (uuid not in now.rows or model.canonical(
                now.rows[uuid].owner) != host)
            for uuid, owner in now.desired.owners().items()))

    def _update(self, seen: snapshot.Snapshot, step: steps.PlannedStep,
                **changes: object) -> None:
        """Change the record of a service, as Nova's API does it.

        :raises CommandError: if Nova refuses
        """
        host, is_down = step.subject, step.action is _Action.FORCE_SERVICE_DOWN
        service = seen.service(host)
        with self._source.cell_of(service.cell) as cell:
            record = cell.changed_service(host, **changes)
            if record is None:
                return
            # The question may have waited long for its answer.
            if is_down and not self._may_live and (
                    cell.is_heard_of_since(service.record, record)):
                raise errors.CommandError(
                    f'The nova-compute on {host} has been heard of since this '
                    'was planned, and is not forced down: see how it is with '
                    '"nova-ironic-ring show".')
            cell.update_service(record)
            self._trail().write(_CODES[step.action], service=host)
            if is_down:
                # There may be hundreds, and they must not wait for this.
                for instance in _instances(seen, model.canonical(host)):
                    self._trail().asked(cell.context, instance, host)


def _leaving(host: str, free: int, held: int) -> list[steps.PlannedStep]:
    """Return the steps that wait until others have the nodes of a service.

    :param host: its name
    :param free: how many free nodes are to go
    :param held: how many instances are to go
    """
    return [
        steps.PlannedStep(action, host, 'wait until its ' + plural.of(
            count, f'{what} is', f'{what}s are') + ' with others', count)
        for action, count, what in (
            (_Action.WAIT_FOR_NODES, free, 'free node'),
            (_Action.WAIT_FOR_INSTANCES, held, 'instance')) if count]


def _recorded(seen: snapshot.Snapshot, host: str) -> int:
    """Count the free nodes that are recorded for a service."""
    return sum(
        model.canonical(row.owner) == host and row.node in seen.nodes
        and seen.nodes[row.node].instance is None
        for row in seen.rows.values())


def _held(seen: snapshot.Snapshot, host: str) -> int:
    """Count the instances on nodes that belong to a service."""
    return len(_instances(seen, host))


def _kept(seen: snapshot.Snapshot, host: str) -> int:
    """Count the instances that a service has, or whose nodes it still has.

    The record of a node follows its instance when the tracker of the taker
    reaches the node.
    """
    following = {
        instance.uuid for row in seen.rows.values()
        if model.canonical(row.owner) == host and row.node in seen.nodes
        and (instance := seen.instance_on(seen.nodes[row.node])) is not None
        and pools.has(instance, row.node)}
    return len(following.union(_instances(seen, host)))


def _instances(seen: snapshot.Snapshot, host: str) -> list[str]:
    """Name the instances on nodes that belong to a service, by UUID."""
    on_nodes = {node.instance for node in seen.nodes.values()}
    # Without Ironic, the nodes of pools are not known.
    is_known = not seen.pools or any(
        node.kind is not None for node in seen.nodes.values())
    return [uuid for uuid, instance in seen.instances.items()
            if model.canonical(instance.host or '') == host and (
                uuid in on_nodes
                or (instance.pool is not None and not is_known))]


def _no_taker(seen: snapshot.Snapshot, host: str) -> str:
    """Say why a service has no other member in its ring, for people."""
    key = seen.key(host) if model.canonical(host) in seen.hosts else None
    still = []
    for name, service in sorted(seen.hosts.items()):
        if name != model.canonical(host) and (
                seen.state(name) is _State.NOT_WORKING) and (
                    None in (key, seen.key(name)) or seen.key(name) == key):
            at = seen.last_pass(name)
            still.append(f'{service.record.host} ' + (
                f'(since {at:%Y-%m-%d %H:%M:%S} UTC)' if at
                else '(for long)'))
    if not still:
        return f'No other member of the ring of {host} lives'
    return (f'The passes of {", ".join(still)} stand still, see their logs, '
            f'and no other member of the ring of {host} lives')


def _others(seen: snapshot.Snapshot, host: str) -> frozenset[str]:
    """Name the services that get the nodes of a service that leaves.

    These are the other members of its ring. If there are none, they are the
    members of the rings that contain its ring. If its record was deleted, that
    may be any ring.
    """
    if host not in seen.hosts:
        return frozenset().union(*(
            seen.rings[key].members for key in seen.keys()))
    key = seen.key(host)
    if key is None:
        return frozenset()
    return seen.rings[key].members - {host} or frozenset(
        member for wider in seen.keys()
        if wider != key and wider.cell == key.cell
        and wider.scope.covers(key.scope)
        for member in seen.rings[wider].members)


# The records of what is done.
_CODES = {_Action.DISABLE_SERVICE: audit.Code.SERVICE_DISABLED,
          _Action.ENABLE_SERVICE: audit.Code.SERVICE_ENABLED,
          _Action.FORCE_SERVICE_DOWN: audit.Code.SERVICE_FORCED_DOWN}

# What is waited for.
_WAITS = (_Action.WAIT_FOR_NODES, _Action.WAIT_FOR_INSTANCES,
          _Action.WAIT_FOR_SHARE)
