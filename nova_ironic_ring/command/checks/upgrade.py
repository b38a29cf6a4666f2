# SPDX-License-Identifier: Apache-2.0

"""The checks, in the form of all OpenStack's upgrade checks."""

from collections.abc import Sequence
import dataclasses

from oslo_upgradecheck import upgradecheck

from nova_ironic_ring.command.checks import table
from nova_ironic_ring.command.telling import snapshot

_Code, _Result = upgradecheck.Code, upgradecheck.Result


@dataclasses.dataclass(frozen=True)
class CheckResult:
    """The result of a check.

    :ivar title: the name of the check
    :ivar words: whether something is wrong, for people
    :ivar details: what was found, in sentences; empty for nothing
    :ivar code: the same as words, for programs: these names stay
    :ivar status: the exit status of the command because of this check
    """

    title: str
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
        # The table prints the results from which the codes were made: no check
        # runs twice.
        self._found: dict[table.Check, upgradecheck.Result] = {}

    def _run(self, check: table.Check) -> upgradecheck.Result:
        if check not in self._found:
            found = [
                f'{finding.subject}: {finding.what}. To do: {finding.advice}.'
                for finding in check.run(self._seen)]
            code = _Code.FAILURE if check.is_fatal else _Code.WARNING
            self._found[check] = (
                _Result(code, ' '.join(found)) if found
                else _Result(_Code.SUCCESS))
        return self._found[check]

    def results(self) -> list[CheckResult]:
        """Run the checks, and return what each says."""
        return [
            CheckResult(
                check.title,
                str(upgradecheck.UPGRADE_CHECK_MSG_MAP[result.code]),
                result.details or '', result.code.name, int(result.code))
            for check in table.CHECKS for result in [self._run(check)]]

    @property
    def _upgrade_checks(self) -> Sequence[tuple]:
        # This makes the library print its table of them.
        return [(check.title, (UpgradeChecks._run, {'check': check}))
                for check in table.CHECKS]
