# SPDX-License-Identifier: Apache-2.0

"""Writes and reads what services say in the statistics of their rows.

With every driver, Nova copies the capabilities of a node, which the node's
owner in Ironic may set, into these statistics. So the keys here are names that
no capability can have: a capability is written ``name:value``, and its name
has no colon.
"""

from collections.abc import Mapping
import dataclasses
import datetime
import json
import math
from typing import Any

from nova_ironic_ring.core.deciding import failures
from nova_ironic_ring.core.peers import shards
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import profile

# An entry names its author: a former owner's last writing may come after
# another has the node.
# What a service says of itself, in its member record.
_MEMBER = 'ironic_ring:member'
# How many nodes a pool has, for its service when it is started again.
_NODES = 'ironic_ring:nodes'
# The inputs from which the row and the resource provider were last made.
_MADE = 'ironic_ring:made'
# On which nodes builds have failed.
_FAILURES = 'ironic_ring:failures'
# The number of them in a report: a row has 64 KiB for all statistics.
_MOST_FAILURES = 20
# The number of services that a member record names.
_MOST_HOSTS = 20
_OURS = 'ironic_ring'


def cleaned(stats: Mapping[str, str]) -> dict[str, str]:
    """Return statistics without entries that look like the driver's own.

    :param stats: the statistics that Nova's driver has made of a node
    """
    return {key: value for key, value in stats.items()
            if not key.strip().lower().startswith(_OURS)}


def say_member(said: ports.Saying) -> dict[str, str]:
    """Return the entry of a member record.

    :param said: what the service says
    """
    last, current = said.last_pass, said.current
    found: dict[str, Any] = {
        'protocol': profile.PROTOCOL, 'cycle': round(last.cycle),
        'profile': dataclasses.asdict(profile.of(current))}
    if last.at is not None:
        found['at'] = last.at.isoformat()
    if said.held is not None:
        found['held'] = ''.join(sorted(said.held))
    if said.ring is not None:
        found['ring'] = said.ring
    if said.has_pools:
        found['pools'] = True
    if said.differ:
        found['differ'] = sorted(said.differ)[:_MOST_HOSTS]
    return _say(current.host, _MEMBER, found)


def read_member(stats: Mapping[str, str] | None, owner: str) -> model.Member:
    """Return what a service says in its member record.

    :param stats: the statistics of the record
    :param owner: the name of the service
    :returns: nothing said if it cannot be read
    """
    found = _member(stats, owner)
    said = _profile_of(found)
    if said is None:
        return model.Member()
    ring = found.get('ring')
    return model.Member(
        _read_last_pass(found), said.scope,
        said.listing == 'shards', _read_held(found),
        # A service that knows another version acknowledges no ring of ours.
        str(ring) if ring is not None and (
            said.protocol == profile.PROTOCOL) else None,
        said.mobility == 'follow', found.get('pools') is True,
        _read_hosts(found.get('differ')))


def _read_hosts(found: Any) -> frozenset[str]:
    """Return names of services in a member record."""
    return frozenset(map(str, found[:_MOST_HOSTS])) if (
        isinstance(found, list)) else frozenset()


def read_profile(stats: Mapping[str, str] | None, owner: str
                 ) -> profile.Profile | None:
    """Return the profile of a service, from its member record.

    :param stats: the statistics of the record
    :param owner: the name of the service
    :returns: None if it cannot be read
    """
    return _profile_of(_member(stats, owner))


def _member(stats: Mapping[str, str] | None, owner: str) -> Mapping[str, Any]:
    """Return the content of a member record; none if it cannot be read."""
    try:
        return _said_by(owner, _MEMBER, stats)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
        return {}


def _profile_of(said: Mapping[str, Any]) -> profile.Profile | None:
    """Return the profile in the content of a member record."""
    try:
        found = said['profile']
        if not isinstance(found, dict):
            raise TypeError(_MEMBER)
        known = {field.name: found[field.name]
                 for field in dataclasses.fields(profile.Profile)
                 if field.name in found}
        for name in 'conductor_group', 'shard':
            if not isinstance(known.get(name), str | None):
                raise TypeError(name)
        names = tuple(map(str, known.get('names', ())))
        listed = {name: tuple(map(str, known[name]))
                  for name in ('capabilities', 'traits')
                  if known.get(name) is not None}
        return profile.Profile(**known | listed | {
            'names': names, 'protocol': int(said['protocol']),
            'pools_limit': int(known.get('pools_limit', 0))})
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
        return None


def _read_last_pass(found: Mapping[str, Any]) -> model.LastPass | None:
    """Return what a member record says of passes."""
    try:
        at, cycle = found.get('at'), float(found['cycle'])
        # What is no number of seconds, no comparison is true of.
        return model.LastPass(cycle, _time(at) if at else None) if (
            0 <= cycle < math.inf) else None
    except (KeyError, OverflowError, TypeError, ValueError):
        return None


def _read_held(found: Mapping[str, Any]) -> frozenset[str]:
    """Return the codes of the shards that a member record says are held."""
    held, length = str(found.get('held', '')), shards.CODE_LENGTH
    return frozenset(held[first:first + length]
                     for first in range(0, len(held), length))


def count(host: str, counted: model.Counted) -> dict[str, str]:
    """Return the entry with the number of nodes of a service.

    :param host: the name of the service
    :param counted: how many there are
    """
    said = {'nodes': counted.nodes, 'listed': counted.listed,
            'asked': counted.asked}
    return _say(host, _NODES, {**said, **({
        'gone': counted.gone, 'gone_at': counted.gone_at.isoformat(),
    } if counted.gone_at else {})})


def read_count(stats: Mapping[str, str] | None, owner: str
               ) -> model.Counted | None:
    """Return the number of nodes in the report of the owner of a pool.

    :param stats: the statistics of its row
    :param owner: the name of its owner
    :returns: None if it says nothing
    """
    try:
        found = _said_by(owner, _NODES, stats)
        gone_at = found.get('gone_at')
        return model.Counted(
            int(found['nodes']), int(found['listed']), str(found['asked']),
            int(found.get('gone', 0)), _time(gone_at) if gone_at else None)
    except (KeyError, TypeError, ValueError):
        return None


def make(host: str, made_of: str, at: float | None) -> dict[str, str]:
    """Return the entry with the inputs from which the row of a node was made.

    :param host: the name of the service
    :param made_of: the fingerprint
    :param at: when it was made of that, in seconds of the wall clock
    """
    return _say(host, _MADE, {'of': made_of, 'at': int(at or 0)})


def read_made(stats: Mapping[str, str] | None, owner: str
              ) -> tuple[str | None, float | None]:
    """Return the inputs from which the owner of a node has made its row.

    :param stats: the statistics of the row
    :param owner: the name of its owner
    :returns: the fingerprint, and when the row was made, in seconds of the
        wall clock; None if it says nothing
    """
    try:
        found = _said_by(owner, _MADE, stats)
        return str(found['of']), int(found['at'])
    except (KeyError, OverflowError, TypeError, ValueError):
        return None, None


def say_failures(host: str, known: failures.Failures) -> dict[str, str]:
    """Return the entry with the nodes on which builds have failed.

    :param host: the name of the service
    :param known: what it knows of the nodes, by UUID; the latest failures are
        reported, and then the latest successes after a failure
    """
    said = sorted(known.items(), key=lambda item: (
        item[1].count > 0, item[1].at))
    return _say(host, _FAILURES, {'nodes': {
        node: [failure.count, failure.at.isoformat(timespec='seconds')]
        for node, failure in said[-_MOST_FAILURES:]}}) if said else {}


def read_failures(stats: Mapping[str, str] | None, owner: str
                  ) -> dict[str, failures.Failure]:
    """Return the nodes on which builds have failed, from the owner of a pool.

    :param stats: the statistics of its row
    :param owner: the name of its owner
    """
    try:
        found = _said_by(owner, _FAILURES, stats)
        return {str(node): failures.Failure(max(0, int(count)), _time(at))
                for node, (count, at) in dict(found['nodes']).items()}
    except (KeyError, OverflowError, TypeError, ValueError):
        return {}


def _time(said: str) -> datetime.datetime:
    """Read a time of the wall clock.

    :raises TypeError: if it is no text
    :raises ValueError: if it is none
    """
    return datetime.datetime.fromisoformat(said).replace(
        tzinfo=datetime.timezone.utc)


def _say(host: str, key: str, said: Mapping[str, object]) -> dict[str, str]:
    """Return an entry that names its author.

    :param host: the name of the service
    :param key: the name of the entry
    :param said: what it says
    """
    return {key: json.dumps(
        {'from': model.canonical(host), **said}, sort_keys=True)}


def _said_by(owner: str, key: str, stats: Mapping[str, str] | None
             ) -> Mapping[str, Any]:
    """Return the content of an entry that the owner of a row has written.

    :param owner: the name of the owner
    :param key: the name of the entry
    :param stats: the statistics of the row
    :raises KeyError: if the owner has written no such entry
    :raises TypeError: if the entry is of another shape
    :raises ValueError: if the entry cannot be read
    """
    try:
        found = json.loads((stats or {})[key])
    except RecursionError as error:
        raise ValueError(key) from error
    if found['from'] != model.canonical(owner):
        raise KeyError(owner)
    return found
