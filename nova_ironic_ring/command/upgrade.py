# SPDX-License-Identifier: Apache-2.0

"""The checks, in the form of all OpenStack's upgrade checks."""

import dataclasses

from oslo_upgradecheck import upgradecheck

from nova_ironic_ring.command import aggregate_checks
from nova_ironic_ring.command import checks
from nova_ironic_ring.command import pool_checks
from nova_ironic_ring.command import snapshot

_Code, _Result = upgradecheck.Code, upgradecheck.Result


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What has come of a check.

    :ivar name: the name of the check
    :ivar words: what has come of it, for people
    :ivar details: what was found, in sentences; empty for nothing
    :ivar code: what has come of it, for programs: these names stay
    :ivar status: the exit status that the command has by this check
    """

    name: str
    words: str
    details: str
    code: str
    status: int


class UpgradeChecks(upgradecheck.UpgradeCommands):
    """One result for each check."""

    def __init__(self, seen: snapshot.Snapshot) -> None:
        """Choose the deployment.

        :param seen: what was read
        """
        self._seen = seen
        # The table prints what the codes were made of: no check runs twice.
        self._results: dict[checks.Check, upgradecheck.Result] = {}

    def _run(self, check: checks.Check, code: upgradecheck.Code
             ) -> upgradecheck.Result:
        if check not in self._results:
            found = [
                f'{finding.subject}: {finding.what}. To do: {finding.advice}.'
                for finding in check(self._seen)]
            self._results[check] = (
                _Result(code, ' '.join(found)) if found
                else _Result(_Code.SUCCESS))
        return self._results[check]

    def results(self) -> list[Outcome]:
        """Run the checks, and return what has come of each."""
        return [
            Outcome(name, str(upgradecheck.UPGRADE_CHECK_MSG_MAP[result.code]),
                    result.details or '', result.code.name, int(result.code))
            for name, (run, arguments) in self._upgrade_checks
            for result in [run(self, **arguments)]]

    # Members that disagree may lose nodes to each other.
    _upgrade_checks = (
        ('Configuration of the members', (
            _run, {'check': checks.configuration, 'code': _Code.FAILURE})),
        ('Conductor groups and shards', (
            _run, {'check': checks.groups, 'code': _Code.WARNING})),
        ('Nodes of two rings', (
            _run, {'check': checks.overlaps, 'code': _Code.FAILURE})),
        ('Host aggregates', (
            _run, {'check': checks.aggregates, 'code': _Code.WARNING})),
        ('Aggregates of compute nodes', (
            _run, {'check': aggregate_checks.members,
                   'code': _Code.WARNING})),
        ('Drivers', (
            _run, {'check': checks.drivers, 'code': _Code.WARNING})),
        ('Releases of the services', (
            _run, {'check': checks.protocols, 'code': _Code.WARNING})),
        ('Passes of the services', (
            _run, {'check': checks.work, 'code': _Code.WARNING})),
        ('Handover timeouts', (
            _run, {'check': checks.timeouts, 'code': _Code.WARNING})),
        ('Times until failover', (
            _run, {'check': checks.failovers, 'code': _Code.WARNING})),
        ('Records of nodes', (
            _run, {'check': checks.rows, 'code': _Code.WARNING})),
        ('Resource providers', (
            _run, {'check': checks.providers, 'code': _Code.WARNING})),
        ('Pools', (
            _run, {'check': pool_checks.pools, 'code': _Code.WARNING})),
        ('Records of pools', (
            _run, {'check': pool_checks.records, 'code': _Code.FAILURE})),
        ('Sizes of pools', (
            _run, {'check': pool_checks.counts, 'code': _Code.WARNING})),
        ('Instances', (
            _run, {'check': checks.instances, 'code': _Code.WARNING})),
        ('Instances in pools', (
            _run, {'check': pool_checks.instances, 'code': _Code.WARNING})),
    )
