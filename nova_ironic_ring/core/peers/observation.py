# SPDX-License-Identifier: Apache-2.0

"""What a service sees in a pass, and what it remembers for the next one."""

from collections.abc import Container, Mapping
import dataclasses
import datetime

from nova_ironic_ring.core.peers.agreement import Agreement
from nova_ironic_ring.core.peers.membership import State
from nova_ironic_ring.core.peers.membership import Watch
from nova_ironic_ring.core.peers.membership import WorkWatch
from nova_ironic_ring.core.peers.trust import Trust
from nova_ironic_ring.core.peers.vanished import Guard
from nova_ironic_ring.core.peers.view import View
from nova_ironic_ring.core.values import merging
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values.pools import Node
from nova_ironic_ring.core.values.pools import Pool
from nova_ironic_ring.core.values.settings import Settings


@dataclasses.dataclass(frozen=True)
class Instances:
    """What is known of instances.

    :ivar mine: the UUIDs of this service's instances
    :ivar of_others: the instances of others, on nodes that are for this
        service, by UUID
    :ivar other_drivers: canonical names of those of their services that run
        another driver
    """

    mine: frozenset[str] = frozenset()
    of_others: Mapping[str, model.Instance] = dataclasses.field(
        default_factory=dict)
    other_drivers: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True)
class Observation:
    """All that the decisions of a pass depend on.

    :ivar at: when it was looked, in seconds
    :ivar view: what this service knows of all services
    :ivar nodes: the instance on each node, None for a free one
    :ivar rows: the rows of this service's nodes, and of the free nodes that
        are for this service
    :ivar instances: what is known of instances
    :ivar narrowed: the nodes that services divide which are limited to some of
        this one's
    """

    at: float
    view: View
    nodes: model.Nodes
    rows: Mapping[str, model.Row]
    instances: Instances = Instances()
    narrowed: Container[str] = frozenset()


@dataclasses.dataclass(frozen=True)
class Wait:
    """A node that this service waits for.

    :ivar owner: the name of the owner that is to let go of it
    :ivar since: since when, in seconds
    """

    owner: str
    since: float


@dataclasses.dataclass(frozen=True)
class Tried:
    """A takeover of which it is not known whether it has succeeded.

    :ivar taken: what has become this service's if it has
    :ivar node: the UUID of the node that Ironic has the instance on
    :ivar at: when it was tried last, in seconds
    """

    taken: model.Takeover
    node: str
    at: float


#: How often to look for a build that is not an instance in Nova yet.
LOOKS = 10


@dataclasses.dataclass(frozen=True)
class LeftBuild:
    """The allocations of a node when its service died.

    :ivar node: the node's UUID
    :ivar host: the name of that service; None if it is not known any more
    :ivar consumers: UUIDs of the consumers that are not settled yet
    :ivar looks: how often to look for them again
    :ivar is_unread: whether Placement has not named the consumers yet
    """

    node: str
    host: str | None
    consumers: frozenset[str]
    looks: int = LOOKS
    is_unread: bool = False


@dataclasses.dataclass(frozen=True)
class Unclaimed:
    """A build that no service had claimed when this one found it.

    :ivar instance: the UUID of the instance
    :ivar node: the UUID of the node that it has an allocation of
    :ivar since: when this service found it, in seconds
    :ivar host: the service that it had come to; None if that is not known
    :ivar is_unread: whether it is not known yet that it had come to this
        service, or has an allocation of a node of this service
    """

    instance: str
    node: str
    since: float
    host: str | None = None
    is_unread: bool = False


@dataclasses.dataclass(frozen=True)
class Search:
    """A search for builds that no service has claimed.

    :ivar at: when it was, in seconds
    :ivar waiting: the UUIDs of the instances that no service had
    """

    at: float = 0.0
    waiting: frozenset[str] = frozenset()


@dataclasses.dataclass
class Handovers(merging.Merged):
    """Builds that may still reach services for nodes they handed over.

    :ivar givers: the names of the services that have handed over nodes since
        the last pass, by the node's UUID
    :ivar builds: what was allocated of such nodes, and has not come to a
        service yet; the host of each is the service that handed over the node
    :ivar is_unanswered: whether Placement has not told of them since the last
        pass
    """

    givers: dict[str, str] = dataclasses.field(default_factory=dict)
    builds: tuple[LeftBuild, ...] = ()
    is_unanswered: bool = False


@dataclasses.dataclass
class Cleaning(merging.Merged):
    """The search for leftovers of nodes of dead services.

    :ivar looked_at: when it was last looked, in seconds; None if never
    :ivar guards: how many nodes of each dead service have vanished
    """

    looked_at: float | None = None
    guards: dict[str, Guard] = dataclasses.field(
        default_factory=dict)


@dataclasses.dataclass
class Pooled(merging.Merged):
    """What a service with pools remembers of its nodes and instances.

    :ivar pools: its pools, by name
    :ivar places: the compute nodes of its instances, by the instance's UUID;
        of those that nothing is being done with
    :ivar dropped: the nodes whose records, which other services had, have gone
        in the last pass
    :ivar occupied: what Ironic has said last of the nodes with an instance, by
        UUID
    :ivar rereads: in how many passes all inventories are to be read anew
    :ivar started: how many nodes there were by its rows when it was started,
        by the name of the pool; none as soon as not too many of them are
        missing; None before that was read
    :ivar gone_at: when it has last believed nodes deleted, by the wall clock;
        None if it has not
    :ivar left_out: the names of the pools that are too many, which it did not
        make in the last pass
    """

    pools: Mapping[str, Pool] = dataclasses.field(default_factory=dict)
    places: Mapping[str, str | None] = dataclasses.field(default_factory=dict)
    dropped: frozenset[str] = frozenset()
    occupied: Mapping[str, Node] = dataclasses.field(default_factory=dict)
    rereads: int = 0
    started: Mapping[str, model.Counted] | None = None
    gone_at: datetime.datetime | None = None
    left_out: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True)
class OwnWork(merging.Merged):
    """What this service says of its passes, and whether that arrives.

    :ivar is_known: whether its member record says its present scope, so that
        its peers count it
    :ivar shown: the time of the last good pass that its record has shown last;
        None if it has shown none
    :ivar is_said: whether it has said another time since then
    :ivar is_working: whether its last pass was good, and its record has shown
        another time in it than in the one before
    :ivar is_failing: whether its last pass has failed, or what it had said
        before did not arrive, so that its peers may go without it
    """

    is_known: bool = False
    shown: datetime.datetime | None = None
    is_said: bool = False
    is_working: bool = False
    is_failing: bool = False


@dataclasses.dataclass(frozen=True)
class Asked(merging.Merged):
    """The shards whose nodes Ironic was asked for.

    :ivar names: these shards
    :ivar used: those of them in which this service has nodes or instances
    """

    names: frozenset[str] = frozenset()
    used: frozenset[str] = frozenset()


@dataclasses.dataclass
class Memory:
    """What a service remembers from one pass to the next.

    :ivar settings: the settings of the last pass; None before the first
    :ivar watch: how long the heartbeats have stood still
    :ivar work_watch: how long the last good passes have stood still
    :ivar own_work: what this service says of its passes
    :ivar view: what this service knew of all services
    :ivar waits: the nodes that are waited for
    :ivar taking: free nodes that the tracker is to take, since the last pass
    :ivar offered: free nodes that are for others, and for whom, by canonical
        name; as long as they are
    :ivar agreement: who acknowledges another ring
    :ivar vanished: how many of this service's nodes have vanished
    :ivar kept: nodes that are missing from Ironic, and kept because Nova has
        an instance on them
    :ivar instances: the instances of others as last read, by UUID
    :ivar nowhere: those that Nova did not have when they were looked for
        between passes
    :ivar other_drivers: canonical names of services with another driver, as
        last read
    :ivar without_row: since when nodes to be taken over have had no row, in
        seconds
    :ivar tried: the takeovers that Nova has not answered, by the instance's
        UUID; all copies share them, because no write is undone by a failure
    :ivar left_builds: what dead services were to build
    :ivar handovers: what live services may still be about to build on nodes
        that they have handed over
    :ivar unclaimed: builds that no service had claimed, at the start or when
        this service searched for such builds
    :ivar searched: its last search for such builds
    :ivar unfreed: UUIDs of instances whose build or unshelving has ended, and
        whose allocation could not be deleted yet; until it is, or another
        service has the instance, or Nova has deleted it
    :ivar cleaning: the search for what is left of nodes of dead services
    :ivar pooled: its pools, where it has the pool driver
    :ivar nodes: the instance on each node, as Ironic has listed them last
    :ivar shards: those that were asked for last, and of these the ones in
        which this service has nodes or instances
    :ivar held: the codes of the shards that this service says it holds; None
        if nodes are not divided by their shards
    :ivar changed: nodes that have changed since the last pass, and that the
        tracker is to update before the next one, in their turn
    :ivar empty: the scope that was said to have no node; None if it has one
    """

    settings: Settings | None = None
    watch: Watch = Watch()
    work_watch: WorkWatch = WorkWatch()
    own_work: OwnWork = OwnWork()
    view: View = View()
    waits: Mapping[str, Wait] = dataclasses.field(default_factory=dict)
    taking: frozenset[str] = frozenset()
    offered: Mapping[str, str] = dataclasses.field(default_factory=dict)
    agreement: Agreement = Agreement()
    vanished: Guard = dataclasses.field(default_factory=Guard)
    kept: set[str] = dataclasses.field(default_factory=set)
    instances: Mapping[str, model.Instance] = dataclasses.field(
        default_factory=dict)
    nowhere: frozenset[str] = frozenset()
    other_drivers: frozenset[str] = frozenset()
    without_row: Mapping[str, float] = dataclasses.field(default_factory=dict)
    tried: dict[str, Tried] = dataclasses.field(default_factory=dict)
    left_builds: tuple[LeftBuild, ...] = ()
    handovers: Handovers = dataclasses.field(default_factory=Handovers)
    unclaimed: tuple[Unclaimed, ...] = ()
    searched: Search = Search()
    unfreed: frozenset[str] = frozenset()
    cleaning: Cleaning = dataclasses.field(default_factory=Cleaning)
    pooled: Pooled = dataclasses.field(default_factory=Pooled)
    nodes: model.Nodes = dataclasses.field(default_factory=dict)
    shards: Asked = Asked()
    held: frozenset[str] | None = None
    changed: tuple[str, ...] = ()
    empty: model.Scope | None = None

    @property
    def memory(self) -> 'Memory':
        """This very memory, for who remembers in the same one all the time."""
        return self

    def copied(self) -> 'Memory':
        """Return a copy, which shares nothing changed in place but tried."""
        return dataclasses.replace(
            self, vanished=self.vanished.copied(), kept=set(self.kept),
            handovers=dataclasses.replace(
                self.handovers, givers=dict(self.handovers.givers)),
            cleaning=dataclasses.replace(self.cleaning),
            pooled=dataclasses.replace(self.pooled))

    def merged(self, before: 'Memory', after: 'Memory') -> 'Memory':
        """Return this memory with what a pass, or a look, has changed.

        Passes, looks and builds run at the same time, each with a copy. What
        is known of the peers is that of the newest look at them.

        :param before: what was remembered when the pass began
        :param after: its copy, when it has ended
        """
        if self is before:
            return after
        found = {field.name: merging.merge(*(
            getattr(each, field.name) for each in (self, before, after)))
            for field in dataclasses.fields(Memory)}
        if after.watch.at == self.watch.at:
            return Memory(**found)
        newer, older = (after, self) if (
            after.watch.at > self.watch.at) else (self, after)
        return Memory(**found | {
            'settings': newer.settings, 'agreement': newer.agreement,
            # Who is absent by the newer look stays so until it is heard.
            'watch': merging.merge(
                older.watch, before.watch, newer.watch).with_those_of(
                    newer.watch, newer.view.with_state(State.ABSENT)),
            'work_watch': merging.merge(
                older.work_watch, before.work_watch, newer.work_watch),
            'view': dataclasses.replace(
                newer.view, ring=newer.view.ring.listed_as(
                    before.view.ring, older.view.ring))})

    def begun(self, at: float, current: Settings) -> 'Memory':
        """Return this memory when a pass begins, for looks during the pass.

        :param at: the present time, in seconds
        :param current: this service's settings
        """
        return dataclasses.replace(
            self, work_watch=self.work_watch.timed(at, current))

    def restore(self, before: 'Memory') -> None:
        """Remember again what was remembered before, and nothing else.

        :param before: a copy that was made then
        """
        vars(self).update(vars(before))

    def forget_instances(self, uuids: Container[str]) -> None:
        """Forget the services of instances, because they have changed.

        :param uuids: their UUIDs
        """
        self.instances = {
            uuid: instance for uuid, instance in self.instances.items()
            if uuid not in uuids}

    def fail(self, at: float) -> None:
        """Note that Nova did not answer.

        :param at: the present time, in seconds
        """
        self.end_unanswered()
        self.waits = {}
        if self.settings is not None:
            self.watch = self.watch.after_outage(
                at, self.view.with_state(State.ABSENT), self.settings)
        if self.view.is_trusted:
            self.view = dataclasses.replace(
                self.view, trust=Trust.BLACKOUT)
        self.work_watch = self.work_watch.unanswered(at)

    def end_unanswered(self) -> None:
        """Note that a pass has failed."""
        self.own_work = dataclasses.replace(
            self.own_work, is_working=False, is_failing=True)
