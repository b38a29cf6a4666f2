# SPDX-License-Identifier: Apache-2.0

"""Compares the results of Tempest's tests with the drivers."""

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
# How many characters of the reason of a failure are printed.
_LINE = 300
# Tempest reports nothing of a class that was torn down without an error.
_UNSAID = outcomes.Result(outcomes.Outcome.PASSED)

#: The results with each driver.
ByDriver = Mapping[str, outcomes.Results]


@dataclasses.dataclass(frozen=True)
class Difference:
    """A test that ends differently, or worse than allowed, with some drivers.

    :ivar test: its name
    :ivar results: its results, by driver
    :ivar worse: the drivers with which it ends worse than allowed
    :ivar why: the explanation; empty if there is none
    """

    test: str
    results: Mapping[str, outcomes.Result]
    worse: Sequence[str] = ()
    why: str = ''

    @property
    def wrong(self) -> bool:
        """Whether it ends worse than allowed, without an explanation."""
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
    """Return the tests that end differently, or worse than allowed.

    A test may not end worse than with Nova's own driver. Without results of
    that driver, each test has to pass or to be skipped.

    :param results: the results by the names of the tests, by driver
    :param explanations: the known differences and failures
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
    # An explanation of tests that fail with each driver does not fit a test
    # that passes with Nova's own driver.
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
    :param explanations: the known differences and failures
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
