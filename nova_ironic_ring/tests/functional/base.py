# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""What the functional tests on a real cloud share."""

import atexit
import contextlib
import subprocess
import sys
from typing import ClassVar
import uuid

from openstack import connection
from oslotest import base
from testtools import content
from testtools import content_type

from nova_ironic_ring.lab import cloud
from nova_ironic_ring.lab import place
from nova_ironic_ring.lab import process
from nova_ironic_ring.lab import state as lab_state


def unique_name() -> str:
    """Return a name for a lab that no other has."""
    return f'test-{uuid.uuid4().hex[:8]}'


def run_lab(name: str, *arguments: str) -> subprocess.CompletedProcess:
    """Run the lab's command line as a user does.

    :param name: the lab's name
    :param arguments: what comes after
    """
    return subprocess.run(
        [sys.executable, '-W', 'ignore', '-m', 'nova_ironic_ring.lab',
         '--name', name, *arguments],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True)


class LabTestCase(base.BaseTestCase):
    """Tests that share a cloud: each leaves the ring as it found it."""

    NODES: ClassVar[int] = 30
    COMPUTES: ClassVar[int] = 3
    DRIVER: ClassVar[str] = lab_state.RING_DRIVER
    GROUPS: ClassVar[tuple[str, ...]] = ()

    lab: ClassVar[cloud.Lab]
    name: ClassVar[str]
    _stack: ClassVar[contextlib.ExitStack]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.name = unique_name()
        fixture = cloud.Cloud(
            place.directory(cls.name), driver=cls.DRIVER,
            computes=cls.COMPUTES, node_count=cls.NODES, groups=cls.GROUPS,
            progress=print)
        # Also where the tests are interrupted.
        cls._stack = contextlib.ExitStack()
        atexit.register(cls._stack.close)
        fixture.setUp()
        cls._stack.callback(fixture.cleanUp)
        cls.lab = fixture.lab

    @classmethod
    def tearDownClass(cls) -> None:
        cls._stack.close()
        super().tearDownClass()

    def setUp(self) -> None:
        super().setUp()
        self.cloud: connection.Connection = self.lab.connect()
        self.addDetail('lab', self._logs())

    def _logs(self) -> content.Content:
        """Attach the ends of the nova-computes' logs to a failure."""
        return content.Content(
            content_type.UTF8_TEXT,
            lambda: [''.join(
                f'== {name}\n{self.lab.compute(name).last_lines(10)}\n'
                for name in self.lab.state.computes).encode()])

    def remove_compute(self, name: str) -> None:
        """Take a nova-compute away for good, as an operator would."""
        self.lab.compute(name).stop()
        for service in self.cloud.compute.services(host=name):
            self.cloud.compute.delete_service(service)
        self.lab.state.computes.remove(name)
        self.lab.state.save()

    def command(self, *arguments: str) -> subprocess.CompletedProcess:
        """Run the lab's command line on this cloud."""
        return run_lab(self.name, *arguments)

    def run_program(self, *command: str, status: int = 0) -> str:
        """Run a program with the lab's clouds.yaml.

        :param command: a program of this virtual environment
        :param status: the exit status that it is to have
        :returns: its output
        """
        directory = self.lab.state.directory
        done = subprocess.run(
            [f'{sys.prefix}/bin/{command[0]}', *command[1:]],
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
            env=process.environment(directory, {
                'OS_CLIENT_CONFIG_FILE': str(directory / 'clouds.yaml'),
                'OS_CLOUD': 'lab'}))
        self.assertEqual(
            status, done.returncode, done.stdout + done.stderr)
        return done.stdout

    def assertNothingLeft(self, name: str) -> None:
        """See that a lab has left no process and no file."""
        directory = place.directory(name)
        self.assertEqual([], list(process.leftovers(directory)))
        self.assertFalse(directory.exists())
