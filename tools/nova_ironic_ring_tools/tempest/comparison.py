# SPDX-License-Identifier: Apache-2.0

"""What differs between the drivers in what comes of Tempest's tests."""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses

import prettytable

from nova_ironic_ring_tools.tempest import explained
from nova_ironic_ring_tools.tempest import outcomes

#: The driver that the others are compared with.
REFERENCE = 'nova'

# From the best to the worst.
_ORDER = [outcomes.Outcome.PASSED, outcomes.Outcome.SKIPPED,
          outcomes.Outcome.FAILED, outcomes.Outcome.MISSING]
# Characters that are printed of why something failed.
_LINE = 300
# Of a class that was torn down nothing is said.
_UNSAID = outcomes.Result(outcomes.Outcome.PASSED)

#: The results with each driver.
ByDriver = Mapping[str, outcomes.Results]


@dataclasses.dataclass(frozen=True)
class Difference:
    """A test that does not end alike with each driver, or should not.

    :ivar test: its name
    :ivar results: what has come of it, by driver
    :ivar worse: the drivers of ours with which it ends worse than it may
    :ivar why: why that is so, if it is explained
    """

    test: str
    results: Mapping[str, outcomes.Result]
    worse: Sequence[str] = ()
    why: str = ''

    @property
    def wrong(self) -> bool:
        """Whether it is to be mended, or explained."""
        return bool(self.worse) and not self.why

    def lines(self) -> Iterator[str]:
        """Return the lines that describe the test."""
        ends = ', '.join(f'{driver} {result.outcome.value}'
                         for driver, result in self.results.items())
        yield f'{"WRONG: " if self.wrong else ""}{self.test}: {ends}'
        if self.why:
            yield f'    {self.why}'
        else:
            for driver, result in self.results.items():
                if result.why:
                    yield f'    {driver}: {result.why[:_LINE]}'


def compare(results: ByDriver,
            explanations: Sequence[explained.Explanation]
            ) -> list[Difference]:
    """Return the tests that do not end alike with each driver.

    :param results: the results by the names of the tests, by driver. Without
        Nova's own driver among them, each test is to pass or to be skipped
    :param explanations: what is known, and why it is so
    """
    tests = sorted(set().union(*results.values()))
    found = (_difference(test, {
        driver: ended.get(test, _UNSAID) for driver, ended in results.items()
    }, explanations) for test in tests)
    return [each for each in found if each.worse or len(
        {result.outcome for result in each.results.values()}) > 1]


def _difference(test: str, results: Mapping[str, outcomes.Result],
                explanations: Sequence[explained.Explanation]) -> Difference:
    may = (results[REFERENCE].outcome if REFERENCE in results
           else outcomes.Outcome.SKIPPED)
    worse = [driver for driver, result in results.items()
             if _ORDER.index(result.outcome) > _ORDER.index(may)]
    # What fails with Nova's driver too is no reason to fail where that passes.
    why = next((each.why for each in explanations if each.fits(test)
                and (each.differs or REFERENCE not in results)), '')
    return Difference(test, results, worse, why)


def unsteady(results: ByDriver) -> list[str]:
    """Name the tests that failed, and passed when they ran once more.

    :param results: the results by the names of the tests, by driver
    """
    return [f'{driver}: {test}' for driver, ended in results.items()
            for test, result in sorted(ended.items())
            if result.again and result.outcome is outcomes.Outcome.PASSED]


def failing(results: ByDriver,
            explanations: Sequence[explained.Explanation]) -> list[str]:
    """Return which tests fail with each driver, and why.

    :param results: the results by the names of the tests, by driver
    :param explanations: what is known, and why it is so
    """
    first, *others = results.values()
    lines: list[str] = []
    for test, result in sorted(first.items()):
        if all(ended.get(test, _UNSAID).outcome is outcomes.Outcome.FAILED
               for ended in (first, *others)):
            why = next((each.why for each in explanations if each.fits(test)
                        ), f'not explained: {result.why[:_LINE]}')
            lines += [test, f'    {why}']
    return lines


def table(results: ByDriver) -> prettytable.PrettyTable:
    """Count the results.

    :param results: the results by the names of the tests, by driver
    """
    printed = prettytable.PrettyTable(['driver', *(
        outcome.value for outcome in outcomes.Outcome)])
    printed.align = 'r'
    printed.align['driver'] = 'l'
    for driver, ended in results.items():
        printed.add_row([driver, *outcomes.counts(ended).values()])
    return printed
