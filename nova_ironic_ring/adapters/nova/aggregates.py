# SPDX-License-Identifier: Apache-2.0

"""Nova's host aggregates, read through conductor."""

from collections.abc import Callable, Container, Mapping
import dataclasses

import nova.conf
from nova import exception
from nova import objects
from oslo_log import log as logging
from oslo_utils import timeutils

from nova_ironic_ring.adapters.nova import records
from nova_ironic_ring.core.deciding import aggregates
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import settings

LOG = logging.getLogger(__name__)
CONF = nova.conf.CONF

# The number of seconds for which the list of other aggregates is valid.
_OTHERS_FRESH = 300.0
# The number of seconds after which all providers have left what the host has
# left: all are updated in the pass after that.
_LEAVING = 21600.0


@dataclasses.dataclass(frozen=True)
class _Said:
    """The latest data of this service's host.

    :ivar at: when, in seconds
    :ivar own: the UUIDs of its aggregates; None if that could not be read yet
    :ivar left: the UUIDs of those that it was in before, and when it was last,
        in seconds
    """

    at: float
    own: frozenset[str] | None = None
    left: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def followed_by(self, at: float, own: frozenset[str]) -> '_Said':
        """Return what is known after the aggregates were read again.

        :param at: when, in seconds
        :param own: the UUIDs of those that it is in
        """
        return _Said(at, own, {
            uuid: last for uuid, last in {
                **self.left, **dict.fromkeys(self.own or (), self.at)}.items()
            if uuid not in own and at - last < _LEAVING})


class Aggregates:
    """Says which aggregates the providers of one service are to be in."""

    def __init__(self, nova: records.Nova, now: Callable[[], float]) -> None:
        """Begin without an answer.

        :param nova: Nova's records
        :param now: tells the time of a monotonic clock, in seconds
        """
        self._nova = nova
        self._now = now
        self._said: _Said | None = None
        #: What the host's first compute node is in, and which that is.
        self._of_first: tuple[str, _Said] | None = None
        #: Whether Nova has a service of Ironic in an aggregate, and when that
        #: was read.
        self._others: dict[str, tuple[float, bool]] = {}
        self._complaint = ''

    def wanted(self, current: settings.Settings, found: frozenset[str],
               members: Container[str]) -> frozenset[str] | None:
        """Return the aggregates in which a provider of this service should be.

        :param current: this service's settings
        :param found: the UUIDs of those that it is in
        :param members: canonical names of services with nodes of Ironic
        :returns: UUIDs; None if Nova does not answer for the host
        """
        said = self._read(current)
        if said.own is None:
            return None
        return aggregates.wanted(found, said.own, {
            uuid for uuid in found - said.own
            if uuid in said.left or self._is_of_another(uuid, members)})

    def as_first(self, found: frozenset[str], first: str,
                 of_first: frozenset[str]) -> frozenset[str]:
        """Name the aggregates of a provider where Nova does not tell them.

        Nova's API puts the first compute node of a host into those of the
        host, and takes it out of them. What else a provider is in, somebody
        has put there by hand.

        :param found: the UUIDs of those that it is in
        :param first: the UUID of the host's first compute node
        :param of_first: the UUIDs of those that this one is in
        """
        node, before = self._of_first or ('', _Said(0.0))
        said = (before if node == first else _Said(0.0)).followed_by(
            self._now(), of_first)
        self._of_first = first, said
        return aggregates.wanted(found, of_first, found & said.left.keys())

    def own(self, current: settings.Settings) -> frozenset[str] | None:
        """Return the aggregates of this service's host.

        :param current: its settings
        :returns: UUIDs; None if Nova has not answered yet
        """
        return self._read(current).own

    def _read(self, current: settings.Settings) -> _Said:
        """Read which aggregates this service's host is in, once a pass."""
        before, host = self._said or _Said(0.0), current.host
        if self._said is not None and (
                self._now() - before.at < current.pass_interval):
            return before
        try:
            own = frozenset(
                each.uuid for each in objects.AggregateList.get_by_host(
                    self._nova.context, host))
        except Exception as error:
            # The tracker goes on with all else. An RPC call may have taken a
            # minute to fail, and is not made for each provider.
            self._said = dataclasses.replace(before, at=self._now())
            if not self._complaint:
                LOG.warning(
                    'Cannot read the host aggregates of %(host)s from Nova: '
                    '%(error)s. Until that works, compute nodes may be '
                    'missing in availability zones. If the conductor of this '
                    'cell has no [api_database], give it one, or put the '
                    'resource providers into aggregates by hand.',
                    {'host': host, 'error': error})
            self._complaint = str(error)
        else:
            self._complaint = ''
            self._said = before.followed_by(self._now(), own)
        return self._said

    def _is_of_another(self, uuid: str, members: Container[str]) -> bool:
        """Return whether an aggregate has another service of Ironic."""
        read_at, is_so = self._others.get(uuid, (None, False))
        if read_at is not None and self._now() - read_at < _OTHERS_FRESH:
            return is_so
        try:
            is_so = self._has_service(uuid, members)
        except Exception as error:
            LOG.warning('Cannot read host aggregate %(uuid)s from Nova, so '
                        'it stays as it is in Placement: %(error)s',
                        {'uuid': uuid, 'error': error})
            is_so = False
        now = self._now()
        self._others = {
            each: (at, so) for each, (at, so) in self._others.items()
            if now - at < _OTHERS_FRESH} | {uuid: (now, is_so)}
        return is_so

    def _has_service(self, uuid: str, members: Container[str]) -> bool:
        try:
            hosts = objects.Aggregate.get_by_uuid(
                self._nova.context, uuid).hosts
        except exception.AggregateNotFound:
            # It is Placement's alone.
            return False
        names = {model.canonical(host) for host in hosts}
        if any(name in members for name in names):
            return True
        # One that is drained, or dead, may have no node any more; of a live
        # one with another driver there may be a thousand.
        now = timeutils.utcnow(with_timezone=True)
        silent = {service.name: service.host
                  for service in self._nova.services()
                  if service.name in names and (
                      service.disabled or service.forced_down
                      or membership.is_late(
                          service, now, CONF.service_down_time))}
        return bool(silent.keys() - self._nova.other_drivers(
            silent.values()))
