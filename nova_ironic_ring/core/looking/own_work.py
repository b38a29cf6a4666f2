# SPDX-License-Identifier: Apache-2.0

"""Reports in the rows of a service that its passes work.

One row has the time of the last good pass; this module chooses it. The peers'
view of it is in :mod:`nova_ironic_ring.core.looking.look`.
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

# The most rows without a report to write in a pass: a service that had Nova's
# own driver may have thousands that are no longer listed.
_MOST_SILENT = 20
# A clock that was so far ahead was wrong.
_FAR = datetime.timedelta(hours=1)


@dataclasses.dataclass(frozen=True)
class Work:
    """What this service reports about its passes in the rows that it lists.

    :ivar said: the report; None before the first pass
    :ivar node: the node in whose row it writes the time of the last good pass;
        None if that is not the row of a listed node
    :ivar is_good: whether this pass is a good one
    """

    said: model.LastPass | None = None
    node: str | None = None
    is_good: bool = False

    def renewed(self, node: str, now: datetime.datetime) -> 'Work':
        """Return the report while a good pass takes long.

        :param node: the UUID of the node whose row has it now
        :param now: the time of the wall clock, with time zone
        """
        assert self.said is not None
        return dataclasses.replace(self, node=node, said=dataclasses.replace(
            self.said, at=_next(self.said.at, now)))

    def of(self, node: str, current: settings.Settings) -> model.LastPass:
        """Return the report for the row of a node.

        All rows but one contain the same in every pass, so that they need not
        be written again.

        :param node: the node's UUID
        :param current: this service's settings
        """
        if self.said is not None and node == self.node:
            return self.said
        return model.LastPass(current.pass_interval)


def say_scope(this: one_pass.Pass, rows: Mapping[str, model.Row],
              listed: Container[str]) -> None:
    """Write the present scope of this service into all its rows.

    Its peers read one of them, which may be that of a node that is no longer
    in its scope, and so is not listed. Rows without a report, for instance
    after Nova's own driver, are written little by little.

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
    # If it fails, the next pass tries again.
    with this.going_on(events.ScopeNotSaid):
        for node in wrong + silent[:_MOST_SILENT]:
            this.world.nova.say_settings(
                node, this.current, memory.held)


def _is_old(row: model.Row, memory: observation.Memory) -> bool:
    """Return whether the tracker could not write what was held before."""
    return memory.held_before is not None and row.held not in (
        memory.held_before, memory.held)


def say(this: one_pass.Pass, listed: Mapping[str, int],
        rows: Mapping[str, model.Row],
        consent: model.Consent | None = None) -> Work:
    """Choose the row for the time of the last good pass.

    Nova's tracker writes it with the rest of the row. This function writes it
    if the tracker writes none of this service's rows, or if the row with the
    former report is not listed: Nova may delete that row before the tracker
    writes another.

    :param this: the pass
    :param listed: the nodes, or pools, that are listed to Nova, by UUID; the
        number is higher if the node is more likely to stay with this service,
        so that all can read the report in its row
    :param rows: the rows of this service, by UUID
    :param consent: by which ring others may take its free nodes. The row with
        the consent is the last to go, because the consent goes with it
    """
    memory = this.memory
    own, is_good = memory.own_work, memory.standing.is_trusted
    shown = model.latest(row.last_pass for row in rows.values())
    at = shown.at if shown else None
    has_moved = at is not None and at != own.shown
    said = model.LastPass(memory.work_watch.cycle, _next(
        at, this.world.process.wall_time()) if is_good else at)
    # If it did not arrive, another row gets it: in the same row, a former
    # consent would last.
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
    is_withdrawn = _withdraw(this, rows, listing)
    is_leaving = own.node is not None and own.node not in listed
    if is_good and node is not None and (
            listing is None or is_leaving and node in rows):
        with this.going_on(events.LastPassNotSaid):
            this.world.nova.say_last_pass(node, said)
    memory.own_work = observation.OwnWork(
        at, node if is_good else None, is_good and has_moved, is_lost)
    if consent is not None and is_withdrawn and is_good and (
            listing is not None):
        said = dataclasses.replace(said, consent=dataclasses.replace(
            consent, but=consent.but | {listing}))
    return Work(said, listing, is_good)


def _withdraw(this: one_pass.Pass, rows: Mapping[str, model.Row],
              node: str | None) -> bool:
    """End the consents in the rows that are no longer to contain one.

    That comes first: otherwise another service could use the old consent while
    the new one is there already.

    :param rows: the rows of this service, by UUID
    :param node: the node whose row Nova's tracker is to write
    :returns: whether none of the others contains one now
    """
    with this.going_on(events.LastPassNotSaid):
        for each, row in rows.items():
            if each != node and row.last_pass and row.last_pass.consent:
                this.world.nova.say_last_pass(
                    each, dataclasses.replace(row.last_pass, consent=None))
        return True
    return False


def _choose(nodes: Collection[str], rows: Mapping[str, model.Row],
            at: datetime.datetime | None, said: model.LastPass) -> str | None:
    """Choose the node whose row gets the time of the last good pass.

    :param nodes: the nodes to choose from
    :param rows: the rows of this service
    :param at: the time in the row that is to be written again; None for
        another row each time
    :param said: the new report
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
    """Return the time of a good pass, which does not go back.

    But if a clock was far ahead, nobody could tell how old the last one is.
    """
    now = now.replace(microsecond=0)
    return now if last is None or last - now > _FAR else max(
        now, last + datetime.timedelta(seconds=1))
