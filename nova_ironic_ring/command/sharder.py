# SPDX-License-Identifier: Apache-2.0

"""Divides nodes into shards in Ironic, and undoes that."""

import argparse
from collections.abc import Callable, Mapping, Sequence
import dataclasses
from typing import TYPE_CHECKING

from rich import console

from nova_ironic_ring.command.access import errors
from nova_ironic_ring.command import display
from nova_ironic_ring.command import steps
from nova_ironic_ring.command.telling import snapshot
from nova_ironic_ring.core.deciding import audit
from nova_ironic_ring.core.deciding import sharding
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import plural

if TYPE_CHECKING:
    from nova_ironic_ring.command.access import source
    from nova_ironic_ring.command import trail

_Action = steps.StepAction

# Nodes between two reports of the progress.
_OFTEN = 50


@dataclasses.dataclass(frozen=True)
class Division:
    """What an operator wants.

    :ivar names: the names of the shards
    :ivar number: how many shards; None for as many as there are
    :ivar group: the conductor group whose nodes are meant, in any case; None
        for all
    :ivar cloud: the name of the cloud in clouds.yaml whose account changes
        nodes; None for Nova's own
    """

    names: sharding.Names = sharding.Names()
    number: int | None = None
    group: str | None = None
    cloud: str | None = None


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add arguments for the number of shards, and their names.

    :param parser: its parser
    """
    parser.add_argument(
        '--shards', type=int, metavar='N',
        help='the number of shards (default: as many as there are)')
    parser.add_argument(
        '--prefix', metavar='TEXT', default=sharding.Names.prefix,
        help='the beginning of their names (default: '
             f'{sharding.Names.prefix})')


def places(seen: snapshot.Snapshot, group: str | None) -> sharding.Places:
    """Return the shards of the selected nodes.

    :param seen: what was read
    :param group: their conductor group; None for all
    :returns: by UUID
    """
    return {node.uuid: sharding.Place(
        node.group, node.shard, model.canonical(instance.host or '')
        if (instance := seen.instance_on(node)) else '')
        for node in seen.nodes.values()
        if group is None or node.group.lower() == group.lower()}


def services(seen: snapshot.Snapshot, group: str | None) -> int:
    """Count the services of the largest ring that may divide shards.

    :param seen: what was read
    :param group: the conductor group whose nodes are meant; None for all
    """
    return max((
        sum(seen.key(host) == key for host in seen.hosts)
        for key in seen.keys() if not key.scope.shard and (
            group is None
            or key.scope.conductor_group in (None, group.lower()))),
        default=0)


def scopes(seen: snapshot.Snapshot) -> dict[str, str]:
    """Return the shards that services are limited to, by their names.

    :param seen: what was read
    """
    return {seen.hosts[host].record.host: said.shard
            for host, said in seen.profiles.items()
            if host in seen.hosts and said.shard}


def divided(seen: snapshot.Snapshot, wanted: Division
            ) -> tuple[dict[str, str], int]:
    """Assign a shard to each node that has none.

    :param seen: what was read
    :param wanted: what is wanted
    :returns: the shards, by the nodes' UUIDs, and how many shards there are
        then
    :raises ValueError: if the number is not possible, or a service is limited
        to one of these shards
    """
    found, names = places(seen, wanted.group), wanted.names
    number = sharding.count(
        found, names, wanted.number, services(seen, wanted.group))
    sharding.see_unused(
        [names.of(each + 1) for each in range(number)], scopes(seen))
    return sharding.divide(found, names, number), number


class Sharder:
    """Divides nodes into shards."""

    def __init__(self, where: 'source.Source', shown: console.Console,
                 written: 'Callable[[], trail.Trail]', wanted: Division
                 ) -> None:
        """Choose the deployment.

        :param where: the deployment
        :param shown: where to show how far it is
        :param written: returns the records of what is done; slow to import
        :param wanted: what is wanted
        """
        self._source = where
        self._console = shown
        self._trail = written
        self._wanted = wanted
        #: The nodes of each step, and the shard that they are in until now.
        self._nodes: dict[
            steps.PlannedStep, tuple[Sequence[str], str | None]] = {}

    def plan(self, seen: snapshot.Snapshot) -> list[steps.PlannedStep]:
        """Plan the division of the nodes.

        :param seen: what was read
        :raises ValueError: if that makes no sense
        :raises CommandError: if Ironic has no shards
        """
        self._source.see_shards(self._wanted.cloud)
        names = self._wanted.names
        given, number = divided(seen, self._wanted)
        before = places(seen, self._wanted.group)
        made = names.made(before)
        for line in sharding.warnings(before, names, scopes(seen)):
            self._console.print(line)
        found = sharding.sizes([*made.values(), *given.values()],
                               names, number)
        self._console.print(
            plural.of(len(given), 'node has', 'nodes have')
            + f' no shard. {plural.of(number, "shard")} '
            f'"{names.prefix}..." will have {found} nodes each.')
        if not found.are_even:
            self._console.print(
                'The sizes differ, because nodes that have a shard stay in '
                'it: to divide all of them again, take them out with --clear '
                'first.')
        if given and seen.needs_shards:
            self._console.print(
                'There are services with [ironic_ring] listing = shards: free '
                'nodes move to the services of their shards.')
        return self._steps(_Action.SET_SHARD, given)

    def plan_clear(self, seen: snapshot.Snapshot) -> list[steps.PlannedStep]:
        """Plan to take the nodes out of their shards.

        :param seen: what was read
        :raises ValueError: if a service is limited to one of the shards
        :raises CommandError: if Ironic has no shards
        """
        self._source.see_shards(self._wanted.cloud)
        names = self._wanted.names
        made = names.made(places(seen, self._wanted.group))
        sharding.see_unused(set(made.values()), scopes(seen))
        if not made:
            self._console.print(
                f'No node is in a shard "{names.prefix}...".')
        elif seen.needs_shards:
            self._console.print(
                'There are services with [ironic_ring] listing = shards: all '
                'of them list the nodes that have no shard, and free nodes '
                'move.')
        return self._steps(_Action.CLEAR_SHARD, made)

    def _steps(self, action: steps.StepAction, shards: Mapping[str, str]
               ) -> list[steps.PlannedStep]:
        """Make a step for each shard.

        :param shards: by the UUIDs of the nodes
        """
        by_shard: dict[str, list[str]] = {}
        for node, shard in sorted(shards.items()):
            by_shard.setdefault(shard, []).append(node)
        is_clear = action is _Action.CLEAR_SHARD
        verb, where = ('take', 'out of') if is_clear else ('put', 'into')
        self._nodes = {
            steps.PlannedStep(
                action, shard,
                f'{verb} {plural.of(len(nodes), "node")} {where} '
                f'shard "{shard}"'):
            (nodes, shard if is_clear else None)
            for shard, nodes in sorted(by_shard.items())}
        return list(self._nodes)

    def change(self, planned: Sequence[steps.PlannedStep]
               ) -> steps.StepResults:
        """Take the steps, and show the progress.

        A node for which a step fails is skipped. If Ironic refuses in general,
        the command ends.

        :param planned: the steps
        """
        results = dict.fromkeys(planned, steps.NOT_DONE)
        with display.progressing(self._console) as shown:
            progress = _Progress(shown, sum(
                len(self._nodes[step][0]) for step in planned))
            for step in planned:
                nodes, before = self._nodes[step]
                wrong = []
                for node in nodes:
                    try:
                        self._change(step, node, before)
                    except errors.RefusedError as error:
                        results[step] = steps.StepResult(
                            steps.ResultCode.FAILED,
                            f'{error} ' + plural.of(
                                progress.count, 'node was', 'nodes were')
                            + ' changed before that.')
                        return results
                    except errors.CommandError as error:
                        wrong.append(str(error))
                    progress.another()
                results[step] = steps.StepResult(
                    steps.ResultCode.FAILED,
                    f'{len(wrong)} of '
                    f'{plural.of(len(nodes), "node")} of this step: '
                    f'{wrong[0]}') if wrong else steps.DONE
        return results

    def _change(self, step: steps.PlannedStep, node: str, before: str | None
                ) -> None:
        """Put one node into a shard, or take it out.

        :param before: the shard that it was in when this was planned
        :raises RefusedError: if Ironic refuses in general
        :raises CommandError: if it refuses for this node
        """
        try:
            # Somebody may have set another one since. Ironic changes a shard
            # unconditionally, and accepts no JSON patch with a "test".
            place = self._source.place(node)
        except errors.CommandError as error:
            raise errors.RefusedError(str(error)) from error
        if place is None:
            return
        if place.shard != before:
            raise errors.CommandError(
                f'Node {node} is in shard "{place.shard}" now: it stays there.'
                if place.shard is not None else
                f'Node {node} is no longer in a shard.')
        after = None if before is not None else step.subject
        self._source.set_shard(node, after, self._wanted.cloud)
        self._trail().write(audit.Code.SHARD_SET, node=node, source=before,
                            target=after)


class _Progress:
    """Counts nodes, and shows periodically how many are left."""

    def __init__(self, shown: display.Progress, left: int) -> None:
        self._shown = shown
        self._most = left
        #: How many are done.
        self.count = 0
        self._show()

    def another(self) -> None:
        """Count one more."""
        self.count += 1
        if self.count % _OFTEN == 0 or self.count == self._most:
            self._show()

    def _show(self) -> None:
        self._shown.show('nodes', self._most - self.count, self._most)
