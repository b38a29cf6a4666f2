# SPDX-License-Identifier: Apache-2.0

import contextlib
import os
import pathlib
import shutil

import fixtures
from oslotest import base

from nova_ironic_ring.lab import errors
from nova_ironic_ring.lab import place
from nova_ironic_ring.lab.running import state


class DirectoryTestCase(base.BaseTestCase):
    """Has a directory for labs of its own."""

    def setUp(self):
        super().setUp()
        self.root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.useFixture(
            fixtures.EnvironmentVariable('TMPDIR', str(self.root)))


class PlaceTestCase(DirectoryTestCase):

    def test_made_for_the_user_alone(self):
        directory = place.directory('a')
        os.close(place.make(directory))
        for path in directory, directory.parent:
            self.assertEqual(0o700, path.stat().st_mode & 0o777)

    def test_writable_for_others(self):
        os.close(place.make(place.directory('a')))
        place.labs().chmod(0o770)
        error = self.assertRaises(errors.LabError, place.directory, 'a')
        self.assertIn('is not a directory of yours alone', str(error))

    def test_link_to_another_place(self):
        elsewhere = self.root / 'elsewhere'
        elsewhere.mkdir(mode=0o700)
        place.labs().symlink_to(elsewhere)
        self.assertRaises(errors.LabError, place.directory, 'a')

    def test_root_that_will_not_do(self):
        blank = self.root / 'a blank'
        blank.mkdir()
        for root in str(blank), str(self.root / 'nowhere'):
            self.useFixture(fixtures.EnvironmentVariable('TMPDIR', root))
            error = self.assertRaises(errors.LabError, place.labs)
            self.assertIn(f'TMPDIR is "{root}"', str(error))

    def test_made_twice(self):
        directory = place.directory('a')
        os.close(place.make(directory))
        error = self.assertRaises(errors.LabError, place.make, directory)
        self.assertIn(f'Cannot make {directory}', str(error))

    def test_locked(self):
        directory = place.directory('a')
        held = place.make(directory)
        self.assertIsNone(place.lock(directory))
        os.close(held)
        os.close(place.lock(directory))


class StateTestCase(DirectoryTestCase):

    def test_saved_and_loaded(self):
        directory = place.directory('a')
        os.close(place.make(directory))
        made = state.State.create(directory, state.STOCK_DRIVER)
        self.assertEqual(made, state.State.load(directory))
        self.assertEqual(len(set(made.ports.values())), len(made.ports))
        self.assertNotEqual(made.secret, made.broker_secret)

    def test_ports_of_labs_that_come_up_together(self):
        # Chosen at random, some would be the same.
        ports: list[int] = []
        for number in range(60):
            directory = place.directory(f'lab-{number}')
            os.close(place.make(directory))
            ports += state.State.create(
                directory, state.STOCK_DRIVER).ports.values()
        self.assertEqual(len(ports), len(set(ports)))

    def test_ports_beside_a_lab_of_another_version(self):
        for name, content in ('a', '[]'), ('b', '{}'), ('c', '{'):
            os.close(place.make(place.directory(name)))
            (place.directory(name) / 'lab.json').write_text(content)
        os.close(place.make(place.directory('d')))
        made = state.State.create(place.directory('d'), state.STOCK_DRIVER)
        self.assertEqual(len(made.ports), len(set(made.ports.values())))

    def test_none(self):
        error = self.assertRaises(
            errors.LabError, state.State.load, place.directory('a'))
        self.assertIn('start one with "up"', str(error))

    def test_of_another_version(self):
        directory = place.directory('a')
        os.close(place.make(directory))
        for content in '{"unknown": 1}', '{', '[]':
            (directory / 'lab.json').write_text(content)
            error = self.assertRaises(
                errors.LabError, state.State.load, directory)
            self.assertIn('another version', str(error))

    def test_what_was_half_removed_goes_with_the_next(self):
        def end(path, ignore_errors):
            raise KeyboardInterrupt()
        for rmtree in end, shutil.rmtree:
            for name in 'a', 'a-b':
                os.close(place.make(place.directory(name)))
            with fixtures.MockPatch('shutil.rmtree', rmtree):
                for name in 'a', 'a-b':
                    with contextlib.suppress(KeyboardInterrupt):
                        state.remove(place.directory(name))
        self.assertFalse(place.labs().exists())

    def test_removed_with_the_last(self):
        for name in 'a', 'b':
            os.close(place.make(place.directory(name)))
        state.remove(place.directory('a'))
        self.assertTrue(place.directory('b').exists())
        state.remove(place.directory('b'))
        self.assertFalse(place.labs().exists())
        state.remove(place.directory('b'))
