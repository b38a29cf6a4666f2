# SPDX-License-Identifier: Apache-2.0

"""The commands that change nothing."""

import argparse
from collections.abc import Iterable, Sequence
import functools
from importlib import metadata
from typing import Any, TYPE_CHECKING

from cliff import lister
from cliff import show
import stevedore
from stevedore import extension

from nova_ironic_ring.command.access import errors
from nova_ironic_ring.command import app
from nova_ironic_ring.command.checks import table
from nova_ironic_ring.command import display
from nova_ironic_ring.command import sharder
from nova_ironic_ring.command.telling import nodes
from nova_ironic_ring.command.telling import overview
from nova_ironic_ring.command.telling import planning
from nova_ironic_ring.command.telling import prospect
from nova_ironic_ring.command.telling import snapshot
from nova_ironic_ring.core.deciding import sharding
from nova_ironic_ring.core.peers import rings
from nova_ironic_ring.core.values import plural

if TYPE_CHECKING:
    from nova_ironic_ring.command.checks import upgrade

_WATCH_INTERVAL = 2

_STYLES = {
    overview.StateCode.MEMBER: 'green', overview.StateCode.DOWN: 'bold red',
    overview.StateCode.NOT_WORKING: 'bold red',
    overview.StateCode.FORCED_DOWN: 'bold red',
    overview.StateCode.GONE: 'bold red'}


class Show(app.Codes, display.Watched):
    """Show the services, the state of each in the ring, and what each owns.

    For a service with pools, the nodes that count in them are its nodes. "To
    hand over" counts free nodes that the ring maps to another service; "To
    fail over" counts instances of services that are gone, or down according to
    Nova's API.
    """

    codes = ('State code',)
    forgiven = (errors.CommandError,)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--no-ironic', action='store_true',
            help='do not ask Ironic: count only nodes of which Nova has '
                 'records, and none of pools')
        parser.add_argument('--watch', action='store_true',
                            help='repeat every two seconds, until Ctrl-C')
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        if not parsed_args.watch:
            return super().run(parsed_args)
        self.watch(parsed_args, _WATCH_INTERVAL)
        return app.DONE

    def take_action(self, parsed_args: argparse.Namespace
                    ) -> tuple[Sequence[str], Iterable[Sequence[object]]]:
        seen = self.see(self.source.read(ironic=not parsed_args.no_ironic))
        if parsed_args.no_ironic and seen.needs_shards:
            raise errors.CommandError(
                'With [ironic_ring] listing = shards only Ironic knows the '
                'desired owner of a node: leave out --no-ironic.')
        return (('Ring', 'Host', 'State', 'Nodes', 'Desired', 'To hand over',
                 'Instances', 'To fail over', 'State code'),
                [(line.ring, line.host, display.Styled(
                    line.is_what.words, _STYLES.get(
                        line.is_what.code, 'yellow')), line.owned,
                  line.desired, line.to_hand_over, line.instances,
                  line.to_fail_over, line.is_what.code.name)
                 for line in overview.lines(seen)])


class NodeShow(app.Codes, show.ShowOne):
    """Show the owner of a node, its desired owner, and what happens to it."""

    codes = ('Owner state code', 'Decided by', 'Decision code', 'To move')

    def _load_formatter_plugins(self) -> stevedore.ExtensionManager:
        # Cliff has CSV only for lists.
        found = super()._load_formatter_plugins()
        found.extensions.append(extension.Extension(
            'csv', metadata.EntryPoint(
                'csv', f'{display.__name__}:CsvOfOne',
                self.formatter_namespace),
            display.CsvOfOne, display.CsvOfOne()))
        return found

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('node', metavar='NODE', help=app.NODE)
        return parser

    def take_action(self, parsed_args: argparse.Namespace
                    ) -> tuple[Sequence[str], Sequence[object]]:
        seen, (node,) = self.source.read_nodes([parsed_args.node])
        self.see(seen)
        told = nodes.explain(seen, node)
        return tuple(told), tuple(told.values())


class NodeList(app.Codes, lister.Lister):
    """List nodes: the owner of each, its desired owner, and the decision.

    For that, the services of a cell run one pass on a copy in memory, without
    Placement. So a node on which its owner is to build may show as offered; no
    service takes it before the build has ended.
    """

    codes = ('Conductor group', 'Shard', 'Ring', 'Pool', 'Reason',
             'Owner state code', 'Decided by', 'Decision code',
             'Failed deployments')

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--owner', metavar='HOST',
                            help='only nodes of this service')
        parser.add_argument(
            '--state', metavar='CODE',
            help='only nodes whose owner is in this state, such as DOWN')
        parser.add_argument(
            '--decision', metavar='CODE',
            help='only nodes with this decision, such as OFFER')
        parser.add_argument('--to-move', action='store_true',
                            help='only nodes that move to another service')
        parser.add_argument('--group', metavar='NAME',
                            help='only nodes of this conductor group; "" for '
                                 'those without one')
        parser.add_argument('--shard', metavar='NAME',
                            help='only nodes of this shard; "" for those '
                                 'without one')
        return parser

    def take_action(self, parsed_args: argparse.Namespace
                    ) -> tuple[Sequence[str], Iterable[Sequence[object]]]:
        found = nodes.choose(self.see(self.source.read()), nodes.Filter(
            parsed_args.owner, parsed_args.state, parsed_args.decision,
            parsed_args.group, parsed_args.shard, parsed_args.to_move))
        return (('Node', 'Name', 'Owner', 'Owner is', 'Desired owner',
                 'Instance', 'Decision', 'To move', *self.codes),
                [(story.node.uuid, story.node.name or '',
                  story.owner_name,
                  story.owner.words if story.owner else '',
                  story.desired or '', story.node.instance or '',
                  story.decision, story.is_to_move, story.node.group,
                  story.node.shard or '', str(story.key or 'none serves it'),
                  story.pool, story.reason,
                  story.owner.code.name if story.owner else '',
                  story.host or '', story.code, story.failed)
                 for story in found])


class Plan(app.Command, lister.Lister):
    """Show what a change of the ring would move, before you make it.

    All services of the ring run their passes on a copy in memory, until
    nothing moves. Without a change, this shows what is still going to move.
    The table counts free nodes. The number of nodes that change hands is
    printed to the standard error. With --listing and --shards, the table also
    shows how many nodes each service lists in a pass.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--add', action='append', default=[],
                            metavar='HOST',
                            help='a service that joins, or returns')
        parser.add_argument('--remove', action='append', default=[],
                            metavar='HOST',
                            help='a service that leaves the ring, or dies')
        parser.add_argument('--disable', action='append', default=[],
                            metavar='HOST',
                            help='a service that is disabled, or drained')
        parser.add_argument('--partitions', type=int, metavar='N',
                            help='points on the ring for each member')
        parser.add_argument(
            '--listing', choices=['all', 'shards'],
            help='a new [ironic_ring] listing on all services of the ring')
        sharder.add_options(parser)
        parser.add_argument(
            '--group', metavar='NAME',
            help='the conductor group of the ring, if there are several '
                 'rings; "" for a ring without one')
        parser.add_argument('--shard', metavar='NAME',
                            help='the shard of the ring, in the same way')
        parser.add_argument('--svg', metavar='FILE',
                            help='also draw it as bars, into this file')
        return parser

    def take_action(self, parsed_args: argparse.Namespace
                    ) -> tuple[Sequence[str], Iterable[Sequence[object]]]:
        _see_partitions(parsed_args.partitions)
        if '' in (*parsed_args.add, *parsed_args.remove,
                  *parsed_args.disable):
            raise errors.CommandError(
                '"" is no name of a service: give a host name with --add, '
                '--remove and --disable.')
        seen = self.see(self.source.read())
        key = _choose(seen, parsed_args.group, parsed_args.shard)
        has_costs = bool(parsed_args.listing) or parsed_args.shards is not None
        plan = planning.plan(seen, key, prospect.Change(
            frozenset(parsed_args.add), frozenset(parsed_args.remove),
            frozenset(parsed_args.disable), parsed_args.partitions,
            None if parsed_args.listing is None
            else parsed_args.listing == 'shards',
            self._shards(parsed_args, seen, key) if has_costs else {}))
        if parsed_args.svg:
            try:
                with open(parsed_args.svg, 'w', encoding='utf-8') as file:
                    file.write(planning.svg(plan))
            except OSError as error:
                raise errors.CommandError(
                    f'"{parsed_args.svg}" cannot be written '
                    f'({error.strerror}): choose another file.') from error
            self.say(f'The picture is in {parsed_args.svg}.')
        self.say(f'{planning.moves(plan)}. Largest share over the mean: '
                 f'{plan.balance:.2f}, then {plan.balance_after:.2f}.')
        if not plan.is_settled:
            self.say('The services disagree: they go by different rings. See '
                     '"nova-ironic-ring check".')
        listed = prospect.of(seen, key).listed() if has_costs else {}
        if has_costs:
            after = [share.listed_after for share in plan.shares]
            self.say('All services together list '
                     f'{plural.of(sum(listed.values()), "node")} in a '
                     f'pass, then {sum(after)}.')
        return (('Host', 'Nodes', 'Nodes after', 'Instances',
                 'Instances after',
                 *(('Listed', 'Listed after') if has_costs else ())),
                [(share.host, share.nodes, share.nodes_after, share.instances,
                  share.instances_after, *(
                      (listed.get(share.host, 0), share.listed_after)
                      if has_costs else ())) for share in plan.shares])

    def _shards(self, parsed_args: argparse.Namespace,
                seen: snapshot.Snapshot, key: rings.Key
                ) -> dict[str, str]:
        """Assign shards to nodes before a ring divides these.

        :raises CommandError: if they cannot be divided so
        :raises ValueError: likewise
        """
        if parsed_args.listing == 'all' or (
                parsed_args.listing is None and not seen.needs_shards):
            if parsed_args.shards is None:
                return {}
            raise errors.CommandError(
                '--shards is for a ring over shards: add --listing shards.')
        if key.scope.shard:
            raise errors.CommandError(
                f'The ring of {key} has only one shard, and cannot be '
                'divided by shards: unset [ironic] shard there first.')
        self.source.see_shards()
        if parsed_args.shards is None:
            if all(node.shard is None for node in seen.served(key)):
                raise errors.CommandError(
                    f'No node of {key} is in a shard: give their number with '
                    '--shards, as for "nova-ironic-ring shard".')
            return {}
        shards, _ = sharder.divided(seen, sharder.Division(
            sharding.Names(parsed_args.prefix), parsed_args.shards,
            key.scope.conductor_group))
        return shards


def _see_partitions(number: int | None) -> None:
    """Check that services can have a number of points on the ring.

    :raises CommandError: if they could not
    """
    # The help does not need all options of Nova.
    from nova_ironic_ring.adapters import conf
    if number is not None and number < 1:
        raise errors.CommandError('--partitions has to be 1 at least.')
    if number is not None and number > conf.partitions_opt.type.max:
        raise errors.CommandError(
            f'--partitions can be {conf.partitions_opt.type.max} at most, as '
            '[ironic_ring] partitions can.')


def _choose(seen: snapshot.Snapshot, group: str | None,
            shard: str | None) -> rings.Key:
    """Find the ring that the arguments select.

    :raises CommandError: if there is none, or more than one
    """
    found = [key for key in seen.keys() if seen.is_meant(key.cell)
             and (group is None or (
                 key.scope.conductor_group or '') == group.lower())
             and (shard is None or (key.scope.shard or '') == shard)]
    if not found:
        raise errors.CommandError(
            'There is no such ring: "nova-ironic-ring show" lists the rings.')
    if len(found) > 1:
        raise errors.CommandError(
            'There is more than one such ring '
            f'({"; ".join(map(str, found))}): choose one with --cell, --group '
            'and --shard, "" for none.')
    return found[0]


class Check(app.Codes, lister.Lister):
    """Find misconfiguration and leftovers, and say what to do about each.

    Exits with 1 if there is something to look at.
    """

    codes = ('Code',)

    def take_action(self, parsed_args: argparse.Namespace
                    ) -> tuple[Sequence[str], Iterable[Sequence[object]]]:
        seen = self.see(self.source.read(providers=True))
        found = table.find(seen)
        if found:
            self.app.status = app.LOOK
        elif self.app.status == app.DONE:
            self.say('All is well.')
        return (('Check', 'Subject', 'Found', 'To do', 'Severity', 'Code'),
                [(finding.kind, finding.subject, finding.what, finding.advice,
                  finding.code.severity.value, finding.code.name)
                 for finding in found])


class UpgradeCheck(app.Codes, lister.Lister):
    """Run the checks of "check" as all OpenStack's upgrade checks are.

    Exits with 0 if all is well, 1 if there is something to look at, 2 if
    something has to be repaired first. The table is that of all OpenStack
    upgrade checks; the other formats have a line for each.
    """

    codes = ('Result code',)

    @functools.cached_property
    def checks(self) -> 'upgrade.UpgradeChecks':
        """The checks, on what was read."""
        # Only this command needs the library.
        from nova_ironic_ring.command.checks import upgrade
        return upgrade.UpgradeChecks(
            self.see(self.source.read(providers=True)))

    def take_action(self, parsed_args: argparse.Namespace
                    ) -> tuple[Sequence[str], Iterable[Sequence[object]]]:
        found = self.checks.results()
        self.app.status = max(
            self.app.status, *(each.status for each in found))
        return (('Check', 'Result', 'Details', *self.codes),
                [(each.title, each.words, each.details, each.code)
                 for each in found])

    def produce_output(self, parsed_args: argparse.Namespace,
                       column_names: Sequence[str], data: Any) -> int:
        if parsed_args.formatter == 'table' and not parsed_args.columns:
            self.checks.check()
            return app.DONE
        return super().produce_output(parsed_args, column_names, data)
