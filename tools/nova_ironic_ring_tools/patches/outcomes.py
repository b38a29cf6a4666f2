# SPDX-License-Identifier: Apache-2.0

"""Runs tests of a project that is on Python's path, in a process of its own.

``python3 -m nova_ironic_ring_tools.patches.outcomes FILE MODULE NAME...``
writes to a file which of the tests of a module have passed, as JSON.
"""

from collections.abc import Iterator
import importlib
import json
import pathlib
import sys
import unittest


def _tests(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from _tests(each)
        else:
            yield each


def run(module: str, names: list[str]) -> dict[str, bool]:
    """Run some tests of a module.

    :param module: its name
    :param names: the names of the tests, without those of their classes: a
        test runs in each class that has it
    :returns: whether each test has passed, by its full name
    """
    loaded = unittest.defaultTestLoader.loadTestsFromModule(
        importlib.import_module(module))
    passed = {}
    for test in _tests(loaded):
        if test.id().rpartition('.')[2] in names:
            result = unittest.TestResult()
            test.run(result)
            passed[test.id()] = result.wasSuccessful() and not result.skipped
    return passed


def main(arguments: list[str]) -> None:
    """Run the tests that a command line names.

    :param arguments: the file, the module, and the names
    """
    path, module, *names = arguments
    pathlib.Path(path).write_text(json.dumps(run(module, names)))


if __name__ == '__main__':
    main(sys.argv[1:])
