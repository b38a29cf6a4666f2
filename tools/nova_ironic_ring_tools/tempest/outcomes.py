# SPDX-License-Identifier: Apache-2.0

"""The results of Tempest's tests."""

from collections.abc import Callable, Iterable, Mapping
import dataclasses
import datetime
import enum
import re
from typing import Any, IO

import subunit
import testtools


class Outcome(enum.Enum):
    """How a test has ended."""

    PASSED = 'passed'
    FAILED = 'failed'
    SKIPPED = 'skipped'
    MISSING = 'not run'


_STATUS = {'success': Outcome.PASSED, 'xfail': Outcome.PASSED,
           'skip': Outcome.SKIPPED}
# The result of a class as a whole has a name like "setUpClass (a.b.Class)".
_OF_A_CLASS = re.compile(r'(setUpClass|tearDownClass) \((\S+)\)')
# A test's ID ends with its attributes: "a.b.Class.test[id-1234,smoke]".
_ATTRIBUTES = re.compile(r'\[[^]]*\]$')


@dataclasses.dataclass(frozen=True)
class Result:
    """How a test has ended, and why.

    :ivar outcome: how it has ended
    :ivar why: why it failed or was skipped, in one line
    :ivar again: whether this is a second run, after a failure
    :ivar seconds: how long it took
    """

    outcome: Outcome
    why: str = ''
    again: bool = False
    seconds: float = dataclasses.field(default=0, compare=False)


Results = Mapping[str, Result]


def name(test: str) -> str:
    """Return the name of a test without its attributes.

    :param test: its ID
    """
    return _ATTRIBUTES.sub('', test)


def read(stream: IO[bytes], tests: Iterable[str],
         tell: Callable[[str, Result], None] = lambda test, result: None
         ) -> dict[str, Result]:
    """Read the results of tests.

    :param stream: the output of the tests, in subunit's format
    :param tests: the IDs of all tests that were to run
    :param tell: is called with the ID and the result of each test that ends
    :returns: the results by the names of the tests; a class that could not be
        torn down has a result as well
    """
    ended: dict[str, Result] = {}

    def end(test: dict[str, Any]) -> None:
        if test['status'] in ('exists', 'inprogress'):
            return
        result = Result(_STATUS.get(test['status'], Outcome.FAILED),
                        _why(test['details']),
                        seconds=_seconds(*test['timestamps']))
        ended[name(test['id'])] = result
        tell(test['id'], result)

    reading = testtools.StreamToDict(end)
    reading.startTestRun()
    subunit.ByteStreamToStreamResult(
        stream, non_subunit_name='stdout').run(reading)
    reading.stopTestRun()
    return _of_each(ended, [name(test) for test in tests])


def _of_each(ended: Mapping[str, Result],
             tests: Iterable[str]) -> dict[str, Result]:
    """Give tests that did not run the result of their class."""
    classes = {match[2]: result for test, result in ended.items()
               if (match := _OF_A_CLASS.fullmatch(test))
               and match[1] == 'setUpClass'}
    missing = Result(Outcome.MISSING)
    return {test: ended.get(test, classes.get(
        test.rpartition('.')[0], missing)) for test in tests} | {
            test: result for test, result in ended.items()
            if test.startswith('tearDownClass')}


def _seconds(begin: datetime.datetime | None,
             end: datetime.datetime | None) -> float:
    """Return how long a test took; 0 if this is not known."""
    return (end - begin).total_seconds() if begin and end else 0


def _why(details: Mapping[str, Any]) -> str:
    """Return in one line why a test failed or was skipped."""
    for key in 'reason', 'traceback':
        for each, content in details.items():
            if each.startswith(key):
                lines = content.as_text().strip().splitlines()
                return lines[-1].strip() if lines else ''
    return ''


def second(result: Result) -> Result:
    """Return the result of a test that has failed before.

    :param result: the result of its second run
    """
    return dataclasses.replace(result, again=True)


def counts(results: Results) -> dict[Outcome, int]:
    """Count the results by how the tests have ended.

    :param results: the results
    """
    return {outcome: sum(result.outcome is outcome
                         for result in results.values())
            for outcome in Outcome}
