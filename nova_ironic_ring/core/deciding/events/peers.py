# SPDX-License-Identifier: Apache-2.0

"""What happens to this service and its peers."""

from collections.abc import Iterable
import dataclasses

from nova_ironic_ring.core.deciding.events import base
from nova_ironic_ring.core.peers import trust
from nova_ironic_ring.core.peers import view
from nova_ironic_ring.core.values import model


@dataclasses.dataclass(frozen=True)
class MembersChanged(base.Event):
    """The ring has other members than before.

    :ivar before: canonical names of the former members
    :ivar now: what the services are now
    """

    LEVEL = base.Level.INFO

    before: frozenset[str]
    now: view.View

    def text(self) -> str:
        members = self.now.members
        changes = [
            f'{host} has come' for host in sorted(members - self.before)] + [
            f'{host} is {self.now.state(host).value}'
            for host in sorted(self.before - members)]
        return (f'Members of the ring: {_names(members)} (before: '
                f'{_names(self.before)}): {", ".join(changes)}.')


@dataclasses.dataclass(frozen=True)
class TrustChanged(base.Event):
    """This service trusts its view of the others more or less than before.

    :ivar before: the former trust
    :ivar now: the new trust
    :ivar down_time: seconds of silence after which a service is absent
    """

    before: trust.Trust
    now: trust.Trust
    down_time: float

    def level(self) -> base.Level:
        return (base.Level.WARNING if self.now is trust.Trust.BLACKOUT
                else base.Level.INFO)

    def text(self) -> str:
        if self.now is trust.Trust.BLACKOUT:
            return ('Heartbeats of this service have been late, or Nova did '
                    'not answer, so those of the others may be late as '
                    'well: until those of this service are in time again, the '
                    'members of the ring stay as they are, and no node is '
                    'taken from a service that looks absent.')
        if self.before is trust.Trust.BLACKOUT:
            return ('Heartbeats of this service are in time again. Those of '
                    'the others are watched anew: a service is absent after '
                    f'{self.down_time:g} s of silence, or after twice that if '
                    'it has not been heard since.')
        return ''


@dataclasses.dataclass(frozen=True)
class PeerListDiffers(base.Event):
    """The peer list and the scopes that the services report differ.

    :ivar unlisted: canonical names of live services that report the scope of
        this one, and are not in the list
    :ivar elsewhere: canonical names of services in the list that report
        another scope
    """

    LEVEL = base.Level.WARNING

    unlisted: frozenset[str]
    elsewhere: frozenset[str]

    def text(self) -> str:
        words = []
        if self.unlisted:
            words.append(f'it leaves out {_names(self.unlisted)}, alive in '
                         'the same conductor group')
        if self.elsewhere:
            words.append(f'it names {_names(self.elsewhere)}, in another '
                         'conductor group or shard')
        return ('[ironic] peer_list does not match what the services report: '
                f'{"; ".join(words)}. The list decides. Correct '
                'it, or remove it from all services of the group, and send '
                'SIGHUP.')


@dataclasses.dataclass(frozen=True)
class ListingDiffers(base.Event):
    """Members of the ring do not agree on how to divide the nodes.

    :ivar hosts: canonical names of members that report another ``listing``
        than this service has; none if all agree again
    :ivar by_shards: whether this service has ``shards``
    """

    hosts: frozenset[str]
    by_shards: bool

    def level(self) -> base.Level:
        return base.Level.WARNING if self.hosts else base.Level.INFO

    def text(self) -> str:
        if not self.hosts:
            return ('All services of the ring have the same [ironic_ring] '
                    'listing.')
        own = 'shards' if self.by_shards else 'all'
        return (f'[ironic_ring] listing is "{own}" here and is not on '
                f'{_names(self.hosts)}, which are in the same ring. All of '
                'them divide the nodes as with "all" until each has "shards": '
                'set the same on all of them, and send SIGHUP.')


@dataclasses.dataclass(frozen=True)
class ScopeEmpty(base.Event):
    """Ironic has no node in the conductor group or shard of this service.

    :ivar scope: both
    """

    LEVEL = base.Level.WARNING

    scope: model.Scope

    def text(self) -> str:
        return (f'Ironic has no node in {_name(self.scope)}, which this '
                'service is limited to: it has nothing to do until there is '
                'one. See [ironic] conductor_group and shard.')


@dataclasses.dataclass(frozen=True)
class PassesFail(base.Event):
    """Another service is alive, and its passes have failed for long.

    :ivar host: its canonical name
    :ivar seconds: how long this service has seen them fail
    """

    LEVEL = base.Level.WARNING

    host: str
    seconds: float

    def text(self) -> str:
        return (f'{self.host} is alive, and its passes have failed for '
                f'{self.seconds:.0f} s or more: its free nodes are taken '
                'over, its instances stay with it. Look at its log, check '
                'that it reaches Ironic and Placement, and check its '
                'credentials in [ironic].')


@dataclasses.dataclass(frozen=True)
class PassesWork(base.Event):
    """The passes of another service work again.

    :ivar host: its canonical name
    """

    LEVEL = base.Level.INFO

    host: str

    def text(self) -> str:
        return (f'The passes of {self.host} work again: it is a member of the '
                'ring.')


@dataclasses.dataclass(frozen=True)
class RingsDiffer(base.Event):
    """Other services have acknowledged another ring for long.

    :ivar hosts: their canonical names
    """

    LEVEL = base.Level.ERROR

    hosts: frozenset[str]

    def text(self) -> str:
        return ('For some passes, this service has gone by another ring than '
                f'{_names(self.hosts)}: no free node goes from one to the '
                'other while both live. Make [ironic] peer_list, '
                'conductor_group and shard and [ironic_ring] partitions agree '
                'on all of them, and send SIGHUP.')


@dataclasses.dataclass(frozen=True)
class RingsAgree(base.Event):
    """Other services do not acknowledge another ring any more.

    :ivar hosts: their canonical names
    """

    LEVEL = base.Level.INFO

    hosts: frozenset[str]

    def text(self) -> str:
        return ('This service goes by the same ring again as '
                f'{_names(self.hosts)}.')


@dataclasses.dataclass(frozen=True)
class LastPassNotSaid(base.Event):
    """This service could not report to its peers that its pass has worked.

    :ivar error: the error
    """

    LEVEL = base.Level.WARNING

    error: Exception

    def text(self) -> str:
        return ('Cannot report to the other services that the passes of this '
                f'one work: {self.error}')


def _names(hosts: Iterable[str]) -> str:
    return ', '.join(sorted(hosts)) or 'none'


def _name(scope: model.Scope) -> str:
    """Name the nodes that a service is limited to."""
    return ' and '.join(
        ([] if scope.conductor_group is None
         else [f'conductor group "{scope.conductor_group}"'])
        + ([f'shard "{scope.shard}"'] if scope.shard else []))
