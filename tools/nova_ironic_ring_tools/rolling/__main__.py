# SPDX-License-Identifier: Apache-2.0

"""Upgrades nova-computes of a lab one after the other, and back.

``python -m nova_ironic_ring_tools.rolling``
"""

import argparse
from collections.abc import Sequence
import pathlib
import sys
import tempfile

import prettytable

from nova_ironic_ring.core.values import plural
from nova_ironic_ring.lab import cloud
from nova_ironic_ring.lab import errors
from nova_ironic_ring.lab import place
from nova_ironic_ring.lab.running import state as lab_state
from nova_ironic_ring_tools.rolling import releases
from nova_ironic_ring_tools.rolling import upgrade

_DRIVERS = {'ring': lab_state.RING_DRIVER, 'pool': lab_state.POOL_DRIVER}
_COMPUTES = 3
_NODES = 12


def run(driver: str, old: releases.Release) -> list[upgrade.Step]:
    """Upgrade all nova-computes of a new lab, and take one back, or all.

    :param driver: ``ring`` or ``pool``
    :param old: what they are to run at first; the rest of Nova is of here
    :returns: what was seen after each restart
    :raises LabError: if something cannot be installed, or the lab fails
    """
    with tempfile.TemporaryDirectory() as directory:
        print(f'Installing {old}', flush=True)
        before = old.install(pathlib.Path(directory))
        after = releases.Release().install(pathlib.Path(directory))
        fixture = cloud.Cloud(
            place.directory('rolling'), driver=_DRIVERS[driver],
            computes=_COMPUTES, node_count=_NODES, alike=True,
            options={'upgrade_levels': {'compute': 'auto'}}, progress=print)
        with fixture:
            try:
                return _steps(fixture.lab, before, after, old)
            except errors.LabError:
                print(f'The logs are in {fixture.lab.keep_logs()}.',
                      flush=True)
                raise


def _steps(lab: cloud.Lab, before: str, after: str, old: releases.Release
           ) -> list[upgrade.Step]:
    """As :func:`run`, on a lab that is up."""
    changed = upgrade.Upgrade(lab, _NODES)
    names = list(lab.state.computes)
    changed.begin(before)
    booted = changed.boot()
    new = after, str(releases.Release())
    back = before, str(old)
    # Nova starts no service that is older than all others.
    order = [(names[0], new), (names[0], back), *((name, new)
                                                  for name in names)]
    if not old.nova:
        order += [(name, back) for name in names]
    steps = []
    for name, (program, release) in order:
        steps.append(changed.change(name, program, release, booted))
        print(', '.join(steps[-1].cells()), flush=True)
    return steps


def main(arguments: Sequence[str]) -> int:
    """Upgrade and downgrade, and print what was seen.

    :param arguments: of the command line
    :returns: the exit status: 1 if a step is not as it should be, 2 if a lab
        has failed
    """
    parser = argparse.ArgumentParser(
        'python3 -m nova_ironic_ring_tools.rolling', description=__doc__)
    parser.add_argument('--driver', choices=list(_DRIVERS), default='ring',
                        help='default: %(default)s')
    parser.add_argument('--nova', default='', metavar='RELEASE',
                        help='the release of Nova to begin with, such as 33 '
                             '(default: the one here)')
    parser.add_argument('--commit', default='', metavar='COMMIT',
                        help='the commit of the driver to begin with '
                             '(default: the files here)')
    chosen = parser.parse_args(arguments)
    old = releases.Release(chosen.nova, chosen.commit)
    if old == releases.Release():
        parser.error('nothing to upgrade from: give --nova or --commit')
    try:
        steps = run(chosen.driver, old)
    except errors.LabError as error:
        print(error, file=sys.stderr)
        return 2
    printed = prettytable.PrettyTable(upgrade.Step.COLUMNS)
    printed.add_rows([step.cells() for step in steps])
    printed.align[upgrade.Step.COLUMNS[0]] = 'l'
    print(printed)
    failed = sum(not step.passed for step in steps)
    print(f'{plural.of(failed, "step")} of {len(steps)} '
          f'{"is not as it" if failed == 1 else "are not as they"} should be.')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
