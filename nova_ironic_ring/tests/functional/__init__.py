# SPDX-License-Identifier: Apache-2.0

"""Tests on a real cloud, those that share one after the other."""

import pathlib
import unittest

import testtools


def load_tests(loader: unittest.TestLoader, tests: unittest.TestSuite,
               pattern: str | None) -> unittest.TestSuite:
    """Put the tests that share a lab together.

    Called by unittest, which has them by the names of their modules.

    :param loader: finds the tests
    :param tests: what is in this module, which is nothing
    :param pattern: of the names of the modules
    """
    found = loader.discover(str(pathlib.Path(__file__).parent),
                            pattern or 'test*.py')
    return unittest.TestSuite(sorted(
        testtools.iterate_tests(found),
        # Those without one first: they have the machine for themselves.
        key=lambda test: repr(getattr(test, 'KIND', ''))))
