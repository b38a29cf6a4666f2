# SPDX-License-Identifier: Apache-2.0

"""The checks, in the form of all OpenStack's upgrade checks."""

from collections.abc import Sequence
import dataclasses
import functools

from oslo_upgradecheck import upgradecheck

from nova_ironic_ring.adapters import names
from nova_ironic_ring.command.checks import table
from nova_ironic_ring.command.telling import snapshot

_Code, _Result = upgradecheck.Code, upgradecheck.Result

#: The check that goes by the Nova of the host where the command runs.
NOVA = 'Release of Nova'


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
    """One result for each check, and before them one for Nova itself."""

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

    @functools.cached_property
    def _nova(self) -> upgradecheck.Result:
        release = names.release()
        # This imports much of Nova.
        lacking = names.missing()
        if lacking:
            return _Result(_Code.FAILURE, 'On this host: '
                           + names.refusal(release, lacking))
        if not names.is_tested(release):
            return _Result(_Code.WARNING, 'On this host: '
                           + names.doubt(release))
        return _Result(_Code.SUCCESS)

    def _run_nova(self) -> upgradecheck.Result:
        return self._nova

    def results(self) -> list[CheckResult]:
        """Run the checks, and return what each says."""
        return [
            CheckResult(
                title, str(upgradecheck.UPGRADE_CHECK_MSG_MAP[result.code]),
                result.details or '', result.code.name, int(result.code))
            for title, result in (
                (NOVA, self._nova),
                *((check.title, self._run(check)) for check in table.CHECKS))]

    @property
    def _upgrade_checks(self) -> Sequence[tuple]:
        # This makes the library print its table of them.
        return [(NOVA, UpgradeChecks._run_nova),
                *((check.title, (UpgradeChecks._run, {'check': check}))
                  for check in table.CHECKS)]
