# SPDX-License-Identifier: Apache-2.0

"""Describes what happens to nodes, in words and in codes."""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses

from nova_ironic_ring.command.telling import counting
from nova_ironic_ring.command.telling import overview
from nova_ironic_ring.command.telling import prospect
from nova_ironic_ring.command.telling import snapshot
from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import rings
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools

_Decision = decisions.Decision

#: The code if no service decides.
NONE = 'NONE'
#: The code for a node that only counts in a pool.
COUNT = 'COUNT'

_GONE = overview.Description(overview.StateCode.GONE, 'not in Nova')

# With these decisions a service does nothing with a node.
_LEAVES = (_Decision.LEAVE, _Decision.LEAVE_INSTANCE)


@dataclasses.dataclass(frozen=True)
class Story:
    """The description of a node.

    :ivar node: the node
    :ivar row: its record, if there is one
    :ivar key: the ring that serves it, if there is one
    :ivar instance: the instance on it, if Nova has it
    :ivar owner: what its owner is, or the service whose pool it counts in;
        None if it has none
    :ivar desired: the canonical name of its desired owner, if there is one
    :ivar host: the canonical name of the service that acts; None for none
    :ivar step: what that service does in its next pass; None where it is that
        the node counts in a pool, or nobody acts
    :ivar reason: why, or why nobody acts
    :ivar owner_name: the name of its owner; empty if it has none
    :ivar count: where the node counts; None if it is in no pool
    :ivar failed: how many deployments on it have failed, and when last, as
        services with pools say; empty for none
    """

    node: snapshot.Node
    row: snapshot.Row | None
    key: rings.Key | None
    instance: snapshot.Instance | None
    owner: overview.Description | None
    desired: str | None
    host: str | None
    step: planner.Step | None
    reason: str
    owner_name: str = ''
    count: counting.Count | None = None
    failed: str = ''

    @property
    def cell(self) -> str | None:
        """The name of the cell that the node is in, if it is in one."""
        if self.row is not None:
            return self.row.cell
        if self.count is not None:
            return self.count.cell
        return self.key.cell if self.key else None

    @property
    def pool(self) -> str:
        """The name of the pool that the node counts in; empty for none."""
        return self.count.pool if self.count is not None else ''

    @property
    def code(self) -> str:
        """The decision, for programs: these names stay."""
        if self.step is not None:
            return self.step.decision.name
        return COUNT if self.count is not None else NONE

    @property
    def decision(self) -> str:
        """Who decides what."""
        if self.code == NONE:
            return 'none'
        return f'{self.host}: {self.code}' if self.host else self.code

    @property
    def is_to_move(self) -> bool:
        """Whether the node moves, or should move, to another service."""
        decision = self.step.decision if self.step else None
        return decision is not None and bool(self.owner_name) and (
            decision.takes or decision.takes_instance or decision.offers
            or decision is _Decision.WAIT)


@dataclasses.dataclass(frozen=True)
class _Act:
    """The service that acts on a node, and how.

    :ivar host: the canonical name of the service that acts; None for none
    :ivar step: what it does, if that is more than to count the node
    :ivar why: why, or why nobody acts
    """

    host: str | None
    step: planner.Step | None
    why: str


class Teller:
    """Describes the nodes of a deployment."""

    def __init__(self, seen: snapshot.Snapshot) -> None:
        """Prepare the answers for the whole deployment.

        :param seen: what was read
        """
        self._seen = seen
        self._described = overview.descriptions(seen)
        self._counted = counting.look(seen)
        # Without a change, all rings of a cell have the same one.
        self._prospects: dict[str, prospect.Prospect] = {}

    def tell(self, node: snapshot.Node) -> Story:
        """Describe a node.

        :param node: the node
        """
        seen = self._seen
        uuid = node.uuid
        row, instance = seen.rows.get(uuid), seen.instance_on(node)
        key, desired = seen.desired.keys.get(uuid), seen.desired.owner(uuid)
        count = self._counted.counted.get(uuid)
        if count is None:
            owner, name = (row.owner_name, row.owner) if row else (None, '')
            act = self._in_ring(node, row, instance)
        else:
            row, owner = None, count.host
            name = (seen.hosts[owner].record.host if owner in seen.hosts
                    else owner)
            act = self._in_pool(node, instance, count)
        failure = seen.failed.get(uuid)
        return Story(
            node, row, key, instance,
            None if owner is None else self._described.get(owner, _GONE),
            desired, act.host, act.step, act.why, name, count,
            '' if failure is None else
            f'{failure.count} in a row, the last at '
            f'{failure.at.isoformat(timespec="seconds")}')

    def _in_ring(self, node: snapshot.Node, row: snapshot.Row | None,
                 instance: snapshot.Instance | None) -> _Act:
        """Return the service that acts on a node that counts in no pool."""
        seen = self._seen
        desired = seen.desired.owner(node.uuid)
        key = seen.desired.keys.get(node.uuid)
        # A service may have a node that no ring serves.
        cell = row.cell if row else instance.cell if instance else None
        place = key or next((
            each for each in seen.keys() if each.cell == cell), None)
        if place is not None and place.cell not in self._prospects:
            self._prospects[place.cell] = prospect.of(seen, place)
        steps = ({} if place is None
                 else self._prospects[place.cell].steps(node.uuid))
        holders = [name for name in (
            instance.host_name if instance else None,
            row.owner_name if row else None) if name is not None]
        host = _acting(steps, holders, desired)
        if host is None:
            return _Act(None, None, self._silence(node, desired))
        step = steps[host]
        if step.decision is not _Decision.LEAVE_INSTANCE:
            return _Act(host, step, f'the node is {step.why}')
        elsewhere = _elsewhere(seen, node, instance)
        advice = elsewhere or self._advise_on_absent(instance, host)
        # No service has to act if the instance does not belong to the ring.
        return _Act(None if elsewhere else host, step, '; '.join(
            filter(None, (f'the node is {step.why}', advice))))

    def _in_pool(self, node: snapshot.Node,
                 instance: snapshot.Instance | None, count: counting.Count
                 ) -> _Act:
        """Return the service that acts on a node that counts in a pool."""
        if instance is None or instance.pool is None:
            why = ('with an instance that Nova does not have, or that has no '
                   'service: reserved' if node.instance is not None
                   else 'free, and counts' if node.is_ready
                   else 'free and not ready: reserved')
            return _Act(count.host, None,
                        f'the node is {why} in the pool of {count.host}')
        seen = self._seen
        state = seen.states.get(count.host, membership.State.GONE)
        if count.taker is not None:
            decision = (_Decision.TAKE_INSTANCE if state.gives
                        else _Decision.FAIL_OVER)
            return _Act(count.taker, planner.Step(decision, decision.value),
                        f'the node is {decision.value}')
        if state.is_lost:
            decision = _Decision.LEAVE_INSTANCE
            host = seen.desired.owner(node.uuid)
            advice = _elsewhere(
                seen, node, instance) or self._advise_on_absent(
                    instance, host or '')
            return _Act(host, planner.Step(decision, decision.value),
                        '; '.join(filter(None, (
                            f'the node is {decision.value}', advice))))
        return _Act(count.host, None, 'the node is with an instance in the '
                    f'pool of {count.host}')

    def _silence(self, node: snapshot.Node, desired: str | None) -> str:
        """Return why no service decides on a node."""
        if desired is None:
            return 'no member lives that could decide'
        left_out = self._counted.left_out.get(node.uuid)
        if not self._seen.has_pools(desired):
            return 'no service that could decide lists the node'
        if left_out is not None:
            return (f'{left_out} has as many pools as [ironic_ring] '
                    "pools_limit lets it make, and none of the node's kind: "
                    'nothing is built on the node')
        if node.uuid in self._seen.rows:
            return ('the node has a record of its own, as another driver '
                    'makes it, and is in no pool')
        if node.kind is None:
            return ('the node has no resource class, so it is in no pool, '
                    'and nothing is built on it')
        return 'no service that could decide lists the node'

    def _advise_on_absent(self, instance: snapshot.Instance | None, host: str
                          ) -> str | None:
        """Return what an operator can do for an instance of an absent service.

        :param instance: the instance, which another service leaves alone
        :param host: the canonical name of that service
        """
        said = self._seen.profiles.get(host)
        if instance is None or said is None or (
                said.mobility == 'pinned') or (
                self._seen.states.get(str(instance.host_name))
                is not membership.State.ABSENT):
            return None
        return (f'{instance.host} is down, and nobody has said that it is '
                'dead: it counts as such after [ironic_ring] failover_after, '
                f'or after "nova-ironic-ring failover {instance.host}"')


def _elsewhere(seen: snapshot.Snapshot, node: snapshot.Node,
               instance: snapshot.Instance | None) -> str | None:
    """Return where Nova has the instance of a node, if not on that node.

    :returns: None if Nova has it on this node, with a service of a ring
    """
    if instance is None or instance.host is None:
        return ('Nova does not have the instance, or it has no service: if '
                "Nova has deleted it, Nova's task for deleted instances frees "
                'the node')
    if not pools.has(instance, node.uuid):
        return (f'Nova has the instance on {instance.node}, with '
                f'{instance.host}')
    if instance.host_name in seen.others | seen.other_rows:
        return f'{instance.host} has nodes that are not of Ironic'
    return None


def explain(seen: snapshot.Snapshot, node: snapshot.Node) -> dict[str, object]:
    """Describe the owner of a node, its desired owner, and what happens to it.

    :param seen: what was read
    :param node: the node
    :returns: the values, by their titles
    """
    teller = Teller(seen)
    story = teller.tell(node)
    row, instance = story.row, story.instance
    successors = list(seen.desired.successors(node.uuid))
    return {
        'Node': node.uuid,
        'Name': node.name or '',
        'Conductor group': node.group,
        'Shard': node.shard or '',
        'Ring': str(story.key) if story.key is not None else 'none serves it',
        'Owner': story.owner_name,
        'Owner is': story.owner.words if story.owner else '',
        'Desired owner': story.desired or '',
        'Pool': story.pool,
        'Successors': ', '.join(successors[1:]),
        'Instance': (f'{instance.uuid} ({instance.name})' if instance
                     else node.instance or ''),
        'Instance belongs to': instance.host or '' if instance else '',
        'Offered to': seen.taker(row) or '' if row else '',
        'Decision': story.decision,
        'Reason': story.reason,
        'Failed deployments': story.failed,
        'Owner state code': story.owner.code.name if story.owner else '',
        'Decided by': story.host or '',
        'Decision code': story.code,
        'To move': story.is_to_move,
    }


def _acting(steps: Mapping[str, planner.Step], holders: Sequence[str],
            desired: str | None) -> str | None:
    """Name the service that acts on a node.

    This is the service that takes it, or else its owner, or else its desired
    owner.

    :param steps: what each service does with the node
    :param holders: the services that the instance and the node belong to
    :param desired: the desired owner, if there is one
    :returns: None if no service lists the node
    """
    first = [host for host in (*holders, desired or '') if host in steps]
    order = [*first, *(host for host in steps if host not in first)]
    taking = [host for host in order if steps[host].decision.takes
              or steps[host].decision.takes_instance]
    having = [host for host in order
              if steps[host].decision not in _LEAVES]
    leaving = [host for host in order if host == desired] + order
    return next(iter([*taking, *having, *leaving]), None)


@dataclasses.dataclass(frozen=True)
class Filter:
    """The selected nodes; None selects all.

    :ivar owner: the name of the service that they are recorded for
    :ivar state: the code of what that service is, in any case
    :ivar decision: the code of what is decided on them, in any case
    :ivar group: their conductor group, in any case; empty for none
    :ivar shard: their shard; empty for none
    :ivar to_move: whether only those that go to another service
    """

    owner: str | None = None
    state: str | None = None
    decision: str | None = None
    group: str | None = None
    shard: str | None = None
    to_move: bool = False

    def fits(self, node: snapshot.Node) -> bool:
        """Return whether a node is in the selected group and shard.

        :param node: the node
        """
        return (self.group is None
                or self.group.lower() == node.group.lower()) and (
            self.shard is None or self.shard == (node.shard or ''))

    def suits(self, story: Story) -> bool:
        """Return whether the description of a node matches.

        :param story: that
        """
        owner = model.canonical(story.owner_name)
        return (self.owner is None
                or owner == model.canonical(self.owner)) and (
            self.state is None or (
                story.owner is not None
                and story.owner.code.name == self.state.upper())) and (
            self.decision is None
            or self.decision.upper() == story.code) and (
            story.is_to_move or not self.to_move)


def choose(seen: snapshot.Snapshot, wanted: Filter) -> list[Story]:
    """Describe the selected nodes.

    :param seen: what was read
    :param wanted: which they are
    :returns: in the order of their names
    :raises ValueError: if the owner is no service at all, no node has the
        group or the shard that is named, or there is no such code
    """
    _see_code(wanted.state, overview.StateCode.__members__, 'state')
    _see_code(wanted.decision, [
        *_Decision.__members__, COUNT,
        NONE], 'decision')
    _see(wanted.group and wanted.group.lower(),
         (node.group.lower() for node in seen.nodes.values()),
         'conductor group')
    _see(wanted.shard, (node.shard or '' for node in seen.nodes.values()),
         'shard')
    if wanted.owner is not None and (
            model.canonical(wanted.owner) not in seen.known):
        seen.service(wanted.owner)
    teller = Teller(seen)
    told = (teller.tell(node) for node in sorted(
        seen.nodes.values(), key=lambda node: (node.name or '', node.uuid))
        if wanted.fits(node))
    return [story for story in told
            if seen.is_meant(story.cell) and wanted.suits(story)]


def _see_code(code: str | None, known: Iterable[str], what: str) -> None:
    """Check that a code exists.

    :raises ValueError: if there is not
    """
    if code is not None and code.upper() not in known:
        raise ValueError(
            f'There is no {what} "{code}": there are {", ".join(known)}.')


def _see(name: str | None, known: Iterable[str], what: str) -> None:
    """See that a name is known: a list without nodes may look like good news.

    That no node is in none is an answer.

    :raises ValueError: if it is not
    """
    names = sorted(set(known))
    if name and name not in names:
        raise ValueError(
            f'Ironic has no node in {what} "{name}": there are '
            f'{", ".join(each or "nodes in none" for each in names)}.')
