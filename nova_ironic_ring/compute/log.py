# SPDX-License-Identifier: Apache-2.0

"""Writes what happens in a pass into the log, one line an event.

It is counted here as well: all events come this way.
"""

from collections.abc import Iterable
import functools

from oslo_log import log as logging

from nova_ironic_ring.compute import counters
from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.peers import disputes
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import trust
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import plural
from nova_ironic_ring.core.values import settings

LOG = logging.getLogger(__name__)

# More events of a kind in a pass become one line: a failover moves hundreds of
# nodes, and so many lines would hide all others.
_MOST = 20


def write(happened: Iterable[events.Event], current: settings.Settings,
          seconds: float = 0.0) -> None:
    """Write events, and count them.

    :param happened: the events, in their order
    :param current: the settings of this service
    :param seconds: how long the pass took
    """
    happened = list(happened)
    counters.COUNTERS.count(happened)
    kinds: dict[tuple, list[events.Event]] = {}
    for event in happened:
        kinds.setdefault(_kind(event), []).append(event)
    many = [each for kind, each in kinds.items()
            if len(each) > _MOST and len(kind) > 1]
    in_many = {id(event) for each in many for event in each}
    for event in happened:
        if isinstance(event, events.PassDone):
            _pass_done(event, seconds)
        else:
            _write(event, current, id(event) in in_many)
    for each in many:
        _many(each)


def _kind(event: events.Event) -> tuple:
    """Return what events of one kind have in common: for moves, whose."""
    match event:
        case events.NodeTaken():
            return events.NodeTaken, event.owner, event.decision.name
        case events.NodeOffered():
            return events.NodeOffered, event.taker
        case events.InstanceTaken():
            return events.InstanceTaken, event.host, event.is_dead
        case events.InstanceMoved():
            return events.InstanceMoved, None
    return (type(event),)


@functools.singledispatch
def _write(event: events.Event, current: settings.Settings, is_one_of_many:
           bool) -> None:
    raise NotImplementedError(event)


def _level(is_one_of_many: bool) -> int:
    return logging.DEBUG if is_one_of_many else logging.INFO


def _many(moves: list[events.Event]) -> None:
    match moves[0]:
        case events.NodeTaken(owner=owner, decision=decision):
            LOG.info('%(count)d nodes of %(owner)s are %(why)s.', {
                'count': len(moves), 'owner': owner, 'why': decision.value})
        case events.NodeOffered(taker=taker):
            LOG.info('%(count)d nodes are offered to %(taker)s.',
                     {'count': len(moves), 'taker': taker})
        case events.InstanceTaken(host=host, is_dead=is_dead):
            LOG.info('%(count)d instances are taken over from %(host)s'
                     '%(why)s.', {'count': len(moves), 'host': host,
                                  'why': _why(is_dead)})
        case events.InstanceMoved(target=target):
            LOG.info('%(count)d instances go to other compute nodes of this '
                     'service, such as %(target)s.', {
                         'count': len(moves), 'target': target})


def _why(is_dead: bool) -> str:
    return ', which is dead' if is_dead else ' with its consent'


@_write.register
def _(event: events.NodeTaken, current: settings.Settings,
      is_one_of_many: bool) -> None:
    LOG.log(_level(is_one_of_many), 'Node %(node)s of %(owner)s is %(why)s.', {
        'node': event.node, 'owner': event.owner,
        'why': event.decision.value})


@_write.register
def _(event: events.NodeOffered, current: settings.Settings,
      is_one_of_many: bool) -> None:
    LOG.log(_level(is_one_of_many), 'Node %(node)s is offered to %(taker)s.',
            {'node': event.node, 'taker': event.taker})


@_write.register
def _(event: events.InstanceTaken, current: settings.Settings,
      is_one_of_many: bool) -> None:
    LOG.log(_level(is_one_of_many),
            'Instance %(instance)s on node %(node)s is taken over from '
            '%(host)s%(why)s.', {
                'instance': event.instance, 'node': event.node,
                'host': event.host, 'why': _why(event.is_dead)})


@_write.register
def _(event: events.InstanceMoved, current: settings.Settings,
      is_one_of_many: bool) -> None:
    LOG.log(_level(is_one_of_many),
            'Instance %(instance)s goes from compute node %(source)s to '
            '%(target)s.', {'instance': event.instance,
                            'source': event.source, 'target': event.target})


@_write.register
def _(event: events.NodesPooled, *_: object) -> None:
    LOG.info('%(nodes)s in pools now, such as %(node)s: the record and the '
             'resource provider of each are gone.', {
                 'nodes': plural.of(
                     len(event.nodes), 'node is', 'nodes are'),
                 'node': event.nodes[0]})


@_write.register
def _(event: events.NodesNotOffered, *_: object) -> None:
    LOG.warning('Placement does not tell whether something is to be built on '
                '%(nodes)s for other services, such as %(node)s: nothing is '
                'offered until it does: %(error)s', {
                    'nodes': plural.of(len(event.nodes), 'free node'),
                    'node': event.nodes[0], 'error': event.error})


@_write.register
def _(event: events.InstanceNotTaken, *_: object) -> None:
    LOG.error('Instance %(instance)s of %(host)s cannot be taken over: '
              '%(error)s', {'instance': event.instance, 'host': event.host,
                            'error': event.error})


@_write.register
def _(event: events.AllocationNotMoved, *_: object) -> None:
    LOG.warning(
        'Placement does not move the allocation of instance %(instance)s to '
        '%(target)s: it has no room there, or has the allocation elsewhere. '
        'The next pass tries again.', {
            'instance': event.instance, 'target': event.target})


@_write.register
def _(event: events.InstanceElsewhere, *_: object) -> None:
    LOG.warning(
        'Ironic has instance %(instance)s on node %(node)s, and Nova does not '
        'have it there: the instance stays with %(host)s. See who has set '
        'instance_uuid of the node.', {
            'instance': event.instance, 'node': event.node,
            'host': event.host})


@_write.register
def _(event: events.BuildEnded, *_: object) -> None:
    LOG.info('The build of instance %(instance)s on node %(node)s has ended '
             'with %(host)s: it is in ERROR.', {
                 'instance': event.instance, 'node': event.node,
                 'host': _nova_compute(event.host)})


@_write.register
def _(event: events.UnshelveEnded, *_: object) -> None:
    LOG.info('Instance %(instance)s, which was to be unshelved on node '
             '%(node)s, stays shelved: %(host)s has died. Unshelve it again.',
             {'instance': event.instance, 'node': event.node,
              'host': _nova_compute(event.host)})


@_write.register
def _(event: events.BuildNotEnded, *_: object) -> None:
    if event.instance is None:
        LOG.warning('Placement does not tell of the builds for node %(node)s '
                    'that %(host)s has left behind; look for instances that '
                    'stay in BUILD: %(error)s', {
                        'node': event.node, 'host': _nova_compute(event.host),
                        'error': event.error})
    else:
        LOG.error('The build of instance %(instance)s, which %(host)s has '
                  'left behind, cannot be ended yet: %(error)s', {
                      'instance': event.instance,
                      'host': _nova_compute(event.host),
                      'error': event.error})


@_write.register
def _(event: events.HandoversUnknown, *_: object) -> None:
    LOG.warning('Whether builds are on their way to former owners of nodes '
                'cannot be seen, and is looked at again: %s', event.error)


@_write.register
def _(event: events.LastPassNotSaid, *_: object) -> None:
    LOG.warning('The other services could not be told that the passes of this '
                'one work: %s', event.error)


@_write.register
def _(event: events.ScopeNotSaid, *_: object) -> None:
    LOG.warning('The other services could not be told which nodes this one '
                'divides by now: %s', event.error)


@_write.register
def _(event: events.RecordRemoved, *_: object) -> None:
    LOG.info('Node %(node)s of %(host)s, which is absent or dead, is not in '
             'Ironic any more: its record is deleted.',
             {'node': event.node, 'host': event.host})


@_write.register
def _(event: events.RecordNotRemoved, *_: object) -> None:
    if event.node is None:
        LOG.error('What dead services have left behind cannot be looked for: '
                  '%s', event.reason)
    else:
        LOG.error('What is left of node %(node)s of %(host)s cannot be '
                  'removed: %(reason)s', {
                      'node': event.node, 'host': event.host,
                      'reason': event.reason})


@_write.register
def _(event: events.DisputeFound, current: settings.Settings, *_: object
      ) -> None:
    LOG.error(
        '%(host)s takes back nodes that %(me)s has taken, such as %(node)s '
        '(%(count)d in all): the two see different rings. Make [ironic] '
        'peer_list, conductor_group and shard and [ironic_ring] partitions '
        'agree on both, and enable '
        "%(host)s if it runs Nova's own driver and is disabled. Until then "
        '%(me)s hardly ever takes a node of %(host)s without its consent.',
        {'host': event.host, 'me': current.host, 'count': len(event.nodes),
         'node': event.nodes[0]})


@_write.register
def _(event: events.DisputeEnded, *_: object) -> None:
    host, state = event.dispute.host, event.dispute.state
    what = ('a member' if state is membership.State.MEMBER else state.value)
    LOG.info('The dispute with %(host)s has ended: %(why)s.', {
        'host': host, 'why': {
            disputes.Reason.OPTIONS_CHANGED:
                'the options of this service have changed',
            disputes.Reason.STATE_CHANGED: f'{host} is {what} by now',
            disputes.Reason.QUIET: 'nothing more was taken back',
        }[event.dispute.reason]})


@_write.register
def _(event: events.NodesVanished, *_: object) -> None:
    named = f', such as {event.nodes[0]}' if event.nodes else ''
    if not event.is_mine:
        host = f'{event.host}, which is absent or dead{named}'
    elif event.unnamed:
        host = 'the pools of this service before its start'
    else:
        host = f'this service{named}'
    LOG.error(
        'Ironic does not show %(missing)d of %(nodes)s of %(host)s: %(kept)s. '
        "See whether Nova's account in [ironic] may still see all nodes; if "
        'they were deleted on purpose, set [ironic_ring] vanished_nodes_limit '
        'to 100 and send SIGHUP.', {
            'missing': len(event.nodes) + event.unnamed,
            'nodes': plural.of(event.total, 'node'),
            'kept': ('they are still counted, and reserved' if event.in_pools
                     else 'none of their records is deleted'),
            'host': host})


@_write.register
def _(event: events.NodeKept, *_: object) -> None:
    LOG.error(
        'Ironic does not show node %(node)s any more, and Nova has instance '
        "%(instance)s on it: its record is kept. See whether Nova's account "
        'in [ironic] may still see the node; if the node was deleted on '
        'purpose, delete the server.',
        {'node': event.node, 'instance': event.instance})


@_write.register
def _(event: events.NodesBack, *_: object) -> None:
    LOG.info('The nodes of this service that had vanished are there again, or '
             'believed deleted.')


@_write.register
def _(event: events.MembersChanged, *_: object) -> None:
    before, now = event.before, event.now.members
    changes = [f'{host} has come' for host in sorted(now - before)] + [
        f'{host} is {event.now.state(host).value}'
        for host in sorted(before - now)]
    LOG.info('Members of the ring: %(now)s (before: %(before)s): '
             '%(changes)s.', {
                 'now': _names(now), 'before': _names(before),
                 'changes': ', '.join(changes)})


@_write.register
def _(event: events.ListingDiffers, *_: object) -> None:
    if not event.hosts:
        LOG.info('All services of the ring have the same [ironic_ring] '
                 'listing.')
        return
    LOG.warning(
        '[ironic_ring] listing is "%(own)s" here and is not on %(hosts)s, '
        'which are in the same ring. All of them divide the nodes as with '
        '"all" until each has "shards": set the same on all of them, and send '
        'SIGHUP.', {'own': 'shards' if event.by_shards else 'all',
                    'hosts': _names(event.hosts)})


@_write.register
def _(event: events.PeerListDiffers, *_: object) -> None:
    words = []
    if event.unlisted:
        words.append(f'it leaves out {_names(event.unlisted)}, alive in the '
                     'same conductor group')
    if event.elsewhere:
        words.append(f'it names {_names(event.elsewhere)}, in another '
                     'conductor group or shard')
    LOG.warning(
        '[ironic] peer_list is not what the services say of themselves: '
        '%(words)s. The list decides. Correct it, or remove it from all '
        'services of the group, and send SIGHUP.',
        {'words': '; '.join(words)})


@_write.register
def _(event: events.SilentOwners, *_: object) -> None:
    LOG.warning(
        '%(hosts)s say nothing of the nodes that they divide, as services '
        "with Nova's own driver, and have nodes of %(scope)s, which this one "
        'is limited to: they are no peers of it, and each side takes these '
        'nodes from the other. %(advice)s', {
            'hosts': _names(event.hosts), 'scope': _scope(event.scope),
            'advice': (
                'Give them this driver, or another shard.'
                if event.scope.shard else
                'Give them this driver, or set [ironic] peer_list with all '
                'services of the group on each of them until they have it, '
                'and send SIGHUP.')})


@_write.register
def _(event: events.ScopeEmpty, *_: object) -> None:
    LOG.warning(
        'Ironic has no node in %s, which this service is limited to: it has '
        'nothing to do until there is one. See [ironic] conductor_group and '
        'shard.', _scope(event.scope))


@_write.register
def _(event: events.PassesFail, *_: object) -> None:
    LOG.warning(
        '%(host)s is alive, and its passes have failed for %(seconds).0f s or '
        'more: its free nodes are taken over, its instances stay with it. '
        'See its log, whether it reaches Ironic and Placement, and its '
        'credentials in [ironic].',
        {'host': event.host, 'seconds': event.seconds})


@_write.register
def _(event: events.TimeoutTooShort, *_: object) -> None:
    LOG.warning(
        'Two passes of the resource tracker take %(needed).0f s on %(host)s, '
        'and [ironic_ring] handover_timeout is %(timeout)g s: nodes may be '
        'taken before their owners could consent. Unset the option, so that '
        'the passes are measured, or raise it.', {
            'host': event.host, 'needed': event.needed,
            'timeout': event.timeout})


@_write.register
def _(event: events.PassesWork, *_: object) -> None:
    LOG.info('The passes of %s work again: it is a member of the ring.',
             event.host)


@_write.register
def _(event: events.TrustChanged, *_: object) -> None:
    if event.now is trust.Trust.BLACKOUT:
        LOG.warning(
            'Heartbeats of this service have been late, or Nova could not be '
            'asked, so those of the others may be late as well: until all has '
            'been in time for %g s, the members of the ring stay as they are '
            'and no node is taken from a service that looks absent.',
            event.down_time)
    elif event.before is trust.Trust.BLACKOUT:
        LOG.info('All heartbeats have been in time for %g s: services that '
                 'look absent are believed absent again.', event.down_time)


@_write.register
def _(event: events.PoolsCounted, *_: object) -> None:
    LOG.log(logging.INFO if event.changed else logging.DEBUG,
            '%(nodes)s in %(pools)s of this service; %(free)d of them can be '
            'built on.', {
                'nodes': plural.of(event.nodes, 'node is', 'nodes are'),
                'pools': plural.of(event.pools, 'pool'),
                'free': event.free})


@_write.register
def _(event: events.PoolsTooSmall, *_: object) -> None:
    LOG.warning(
        'The %(nodes)d nodes of this service are in %(pools)d pools: '
        'nearly each has traits or capabilities that no other has. Each pool '
        'costs as much as a node costs with IronicRingDriver.', {
            'nodes': event.nodes, 'pools': event.pools})


@_write.register
def _(event: events.DeploymentFailed, *_: object) -> None:
    LOG.warning(
        'The deployment of instance %(instance)s on node %(node)s has failed, '
        'the last %(count)s there: until %(until)s builds try this node after '
        'all others of its kind: %(error)s', {
            'instance': event.instance, 'node': event.node,
            'count': plural.of(event.count, 'deployment'),
            'until': event.until.isoformat(timespec='seconds'),
            'error': event.error})


@_write.register
def _(event: events.PoolsLeftOut, *_: object) -> None:
    LOG.warning(
        'There are more kinds of nodes than [ironic_ring] pools_limit lets '
        'this service make pools of, which is %(limit)d: nothing is built on '
        '%(nodes)s of %(kinds)s, such as %(node)s. See who has set the traits '
        'and capabilities of these, and name those that flavors ask for in '
        '[ironic_ring] pool_traits and pool_capabilities, or raise the '
        'limit.', {
            'limit': event.limit, 'node': event.nodes[0],
            'nodes': plural.of(len(event.nodes), 'node'),
            'kinds': plural.of(event.left_out, 'kind')})


@_write.register
def _(event: events.PoolsWithinLimit, *_: object) -> None:
    LOG.info('Of each kind of its nodes this service has a pool again: %s.',
             plural.of(event.pools, 'pool'))


@_write.register
def _(event: events.AllocationsUnknown, *_: object) -> None:
    LOG.warning(
        'Placement does not tell who has allocations of pool %(pool)s: each '
        'instance in it is believed to have one: %(error)s', {
            'pool': event.pool, 'error': event.error})


def _pass_done(event: events.PassDone, seconds: float) -> None:
    """Say what has been decided, at INFO if anything moves."""
    LOG.log(
        logging.INFO if event.moves else logging.DEBUG,
        'Of %(nodes)s, %(counts)s. This took %(seconds).2f s.', {
            'nodes': plural.of(sum(event.counts.values()), 'node'),
            'counts': ', '.join(
                f'{count} {decision.value}'
                for decision, count in event.counts.items()) or 'none',
            'seconds': seconds})


def _names(hosts: Iterable[str]) -> str:
    return ', '.join(sorted(hosts)) or 'none'


def _scope(scope: model.Scope) -> str:
    """Name the nodes that a service is limited to."""
    return ' and '.join(
        ([] if scope.conductor_group is None
         else [f'conductor group "{scope.conductor_group}"'])
        + ([f'shard "{scope.shard}"'] if scope.shard else []))


def _nova_compute(host: str | None) -> str:
    return f'the nova-compute {host}' if host else 'its nova-compute'
