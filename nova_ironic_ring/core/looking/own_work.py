# SPDX-License-Identifier: Apache-2.0

"""Says in the rows of a service that its passes work.

One row says when the last good pass was; which one, is chosen here. What the
peers make of that is in :mod:`nova_ironic_ring.core.looking.look`.
"""

from collections.abc import Collection, Container, Mapping
import dataclasses
import datetime
import hashlib

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import settings

# So many rows that say nothing are written in a pass: a service that has had
# Nova's own driver may have thousands that are not listed any more.
_MOST_SILENT = 20


@dataclasses.dataclass(frozen=True)
class Work:
    """What this service says of its passes in the rows that it lists.

    :ivar said: what it says; None before the first pass
    :ivar node: the node in whose row it says when the last good one was; None
        if it says that in no row that is listed
    :ivar is_good: whether this pass is a good one
    """

    said: model.LastPass | None = None
    node: str | None = None
    is_good: bool = False

    def renewed(self, node: str, now: datetime.datetime) -> 'Work':
        """Return what is said while a good pass goes on for long.

        :param node: the UUID of the node in whose row it is said now
        :param now: the time of the wall clock, with time zone
        """
        assert self.said is not None
        return dataclasses.replace(self, node=node, said=dataclasses.replace(
            self.said, at=_next(self.said.at, now)))

    def of(self, node: str, current: settings.Settings) -> model.LastPass:
        """Return what the row of a node is to say.

        All rows but one say the same in every pass, so that they need not be
        written.

        :param node: the node's UUID
        :param current: this service's settings
        """
        if self.said is not None and node == self.node:
            return self.said
        return model.LastPass(current.pass_interval)


def say_scope(this: one_pass.Pass, rows: Mapping[str, model.Row],
              listed: Container[str]) -> None:
    """Have all rows of this service say which nodes it divides by now.

    Its peers read one of them, which may be of a node that is not in its scope
    any more, and so is not listed. Those that say nothing, as after Nova's own
    driver, are written little by little.

    :param this: the pass
    :param rows: the rows of this service
    :param listed: the nodes, or pools, whose rows Nova's tracker writes
    """
    scope, memory = this.current.scope, this.memory
    wrong = [node for node, row in rows.items()
             if row.scope is not None and (
                 not scope.is_same(row.scope) or _is_old(row, memory)
                 or node not in listed
                 and row.held != (memory.held or frozenset()))]
    silent = sorted(node for node, row in rows.items()
                    if row.scope is None and node not in listed)
    # Where it fails, the next pass tries again.
    with this.going_on(events.ScopeNotSaid):
        for node in wrong + silent[:_MOST_SILENT]:
            this.world.nova.say_settings(
                node, this.current, memory.held)


def _is_old(row: model.Row, memory: observation.Memory) -> bool:
    """Say whether the tracker has failed to write what was held before."""
    return memory.held_before is not None and row.held not in (
        memory.held_before, memory.held)


def say(this: one_pass.Pass, listed: Mapping[str, int],
        rows: Mapping[str, model.Row],
        consent: model.Consent | None = None) -> Work:
    """Choose the row that is to say when the last good pass was.

    Nova's tracker writes it with all else that it reports. Where it reports
    none of this service's nodes, the row is written here.

    :param this: the pass
    :param listed: the nodes, or pools, that are listed to Nova, by UUID: how
        surely each stays with this service, so that all can read in its row
        what this one says
    :param rows: the rows of this service, by UUID
    :param consent: by which ring others may take its free nodes. The one that
        says so goes last, for the consent goes with it
    """
    memory = this.memory
    own, is_good = memory.own_work, memory.standing.is_trusted
    shown = model.latest(row.last_pass for row in rows.values())
    at = shown.at if shown else None
    has_moved = at is not None and at != own.shown
    said = model.LastPass(memory.work_watch.cycle, _next(
        at, this.world.process.wall_time()) if is_good else at)
    # Where it did not arrive, it is said elsewhere: not in the same row again,
    # where a former consent would last.
    is_lost = own.node in rows and not has_moved
    last = None if is_lost else at
    known = [node for node in listed if node in rows] or list(listed)
    other = list(rows)
    if is_lost:
        known = [node for node in known if node != own.node] or known
        other = [node for node in other if node != own.node] or other
    else:
        surest = max((listed[node] for node in known), default=0)
        known = [node for node in known if listed[node] == surest]
    listing = _choose(known, rows, last, said)
    node = listing or _choose(other, rows, last, said)
    _withdraw(this, rows, listing)
    if is_good and node is not None and listing is None:
        with this.going_on(events.LastPassNotSaid):
            this.world.nova.say_last_pass(node, said)
    memory.own_work = observation.OwnWork(
        at, node if is_good else None, is_good and has_moved, is_lost)
    if consent is not None and is_good and listing is not None:
        said = dataclasses.replace(said, consent=dataclasses.replace(
            consent, but=consent.but | {listing}))
    return Work(said, listing, is_good)


def _withdraw(this: one_pass.Pass, rows: Mapping[str, model.Row],
              node: str | None) -> None:
    """End the consents in the rows that are not to say one any more.

    That comes first: else another service may go by the old one while the new
    one is there already.

    :param rows: the rows of this service, by UUID
    :param node: the node whose row Nova's tracker is to write
    """
    with this.going_on(events.LastPassNotSaid):
        for each, row in rows.items():
            if each != node and row.last_pass and row.last_pass.consent:
                this.world.nova.say_last_pass(
                    each, dataclasses.replace(row.last_pass, consent=None))


def _choose(nodes: Collection[str], rows: Mapping[str, model.Row],
            at: datetime.datetime | None, said: model.LastPass) -> str | None:
    """Choose the node whose row says when the last good pass was.

    :param nodes: the nodes that there are to choose from
    :param rows: the rows of this service
    :param at: when it was by what the row says that is to say it again; None
        for another row each time
    :param said: what is to be said now
    """
    if at is not None:
        for node in nodes:
            row = rows.get(node)
            if row is not None and row.last_pass is not None and (
                    row.last_pass.at == at):
                return node
    return min(nodes, key=lambda node: hashlib.sha256(
        f'{said.at} {node}'.encode()).digest(), default=None)


def _next(last: datetime.datetime | None, now: datetime.datetime
          ) -> datetime.datetime:
    """Return the time of a good pass, which never goes back."""
    now = now.replace(microsecond=0)
    return max(now, last + datetime.timedelta(seconds=1)) if last else now
