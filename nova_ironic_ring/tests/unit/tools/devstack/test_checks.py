# SPDX-License-Identifier: Apache-2.0

"""Tests of the checks, on a cloud that is made up."""

import contextlib
import io
import pathlib
from typing import Any

import fixtures
from oslotest import base

from nova_ironic_ring_tools.devstack import checks
from nova_ironic_ring_tools.devstack import cloud as clouds
from nova_ironic_ring_tools.devstack import container
from nova_ironic_ring_tools.devstack import errors
from nova_ironic_ring_tools.devstack import settings

_HOSTS = ['box', 'box-2', 'box-3']


class FakeBox(container.Container):
    """A container in which the cloud below runs."""

    def __init__(self, directory: pathlib.Path, cloud: 'FakeCloud') -> None:
        super().__init__(directory)
        self.cloud = cloud
        self.processes = 'systemd\nbash\n'

    def root_run(self, *argv: str) -> str:
        match argv:
            case ('hostname',):
                return 'box\n'
            case ('ps', *_):
                return self.processes
            case ('systemctl', verb, *_, unit):
                self.cloud.told.append(f'{verb} {unit}')
                host = unit.replace('devstack@n-cpu', 'box')
                (self.cloud.dead.add if verb == 'kill' else
                 self.cloud.dead.discard)(host)
        return ''

    def user_run(self, script: str) -> str:
        self.cloud.told.append(script.rpartition('/')[2])
        return ''


class FakeCloud(clouds.Cloud):
    """A cloud with three services, of which some may be dead.

    :ivar told: what it was told to do
    :ivar dead: the services that are
    :ivar broken: whether it does not move the nodes of the dead
    """

    def __init__(self, directory: pathlib.Path, groups: dict[str, list[str]]
                 ) -> None:
        super().__init__(FakeBox(directory, self))
        self.told: list[str] = []
        self.dead: set[str] = set()
        self.broken = False
        self.groups = groups
        self.server: str | None = None
        self.status = 'ACTIVE'

    def nodes(self) -> dict[str, dict[str, Any]]:
        found = {}
        for number in range(6):
            group = sorted(self.groups)[number % len(self.groups)]
            hosts = self.groups[group]
            alive = [host for host in hosts
                     if self.broken or host not in self.dead]
            owner = alive[number // len(self.groups) % len(alive)]
            found[f'n{number}'] = {
                'Node': f'n{number}', 'Owner': owner, 'Desired owner': owner,
                'Conductor group': group,
                'Instance': (self.server or '') if number == 0 else ''}
        return found

    def services(self) -> dict[str, dict[str, Any]]:
        owners = [line['Owner'] for line in self.nodes().values()]
        return {host: {'Host': host, 'Nodes': owners.count(host),
                       'State code': 'DOWN' if host in self.dead else 'MEMBER'}
                for host in _HOSTS}

    def do(self, *words: str, system: bool = False) -> str:
        self.told.append(' '.join(words[:2]))
        self.server = 's1' if words[1] == 'create' else None
        self.polls = 0
        return ''

    def openstack(self, *words: str, system: bool = False) -> Any:
        if words[:2] == ('server', 'list'):
            return [{'ID': 's0', 'Name': 'other'}, *(
                [{'ID': 's1', 'Name': 'nova-ironic-ring-check'}]
                if self.server else [])]
        if words[:2] == ('server', 'show'):
            self.polls += 1
            if self.polls == 1:
                return {'status': 'BUILD'}
            return {'id': 's1', 'status': self.status,
                    'OS-EXT-SRV-ATTR:host': self.nodes()['n0']['Owner']}
        return {'provision_state': 'available'}


class ChecksTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path)
        for name in '_STEADY', '_MOVED', '_CLEANED', '_BUILT':
            self.useFixture(fixtures.MonkeyPatch(
                f'nova_ironic_ring_tools.devstack.checks.{name}', 0.05))
        self.useFixture(fixtures.MonkeyPatch(
            'nova_ironic_ring_tools.devstack.cloud._POLL', 0.01))
        self.output = io.StringIO()

    def _prepare(self, groups: dict[str, list[str]] | None = None,
                 wanted: dict[str, int] | None = None) -> None:
        self.cloud = FakeCloud(self.directory, groups or {'': _HOSTS})
        self.checks = checks.Checks(self.cloud, settings.Cloud(
            nodes=6, groups=wanted or {}))

    def _run(self) -> None:
        with contextlib.redirect_stdout(self.output):
            self.checks.run()

    def _fails(self) -> str:
        return str(self.assertRaises(errors.DevstackError, self._run))

    def test_all(self):
        self._prepare()
        self._run()
        self.assertEqual(
            ['start devstack@n-cpu', 'start devstack@n-cpu-2',
             'start devstack@n-cpu-3', 'server create',
             'kill devstack@n-cpu-3', 'start devstack@n-cpu-3',
             'nova-ironic-ring check', 'server delete'], self.cloud.told)
        self.assertIn('kill -9 of box-3: after 0 s the others have its nodes: '
                      'box 3, box-2 3, box-3 0.', self.output.getvalue())

    def test_after_one_that_has_failed(self):
        self._prepare()
        self.cloud.server = 's1'
        self.cloud.dead.add('box-3')
        self._run()
        self.assertEqual(['server delete', 'server create'],
                         self.cloud.told[3:5])

    def test_server_that_is_not_built(self):
        self._prepare()
        self.cloud.status = 'BUILD'
        self.assertIn('the server nova-ironic-ring-check is built',
                      self._fails())

    def test_groups(self):
        self._prepare({'': ['box', 'box-2'], 'rack-b': ['box-3']},
                      {'': 2, 'rack-b': 1})
        self._run()
        # The only one of its group has nobody to take its nodes.
        self.assertIn('kill devstack@n-cpu-2', self.cloud.told)

    def test_groups_and_a_server_on_the_second_service(self):
        # The first node, which gets the server, is of the first group.
        self._prepare({'': ['box-2', 'box'], 'rack-b': ['box-3']},
                      {'': 2, 'rack-b': 1})
        self._run()
        self.assertIn('kill devstack@n-cpu', self.cloud.told)
        self.assertIn('start devstack@n-cpu', self.cloud.told)

    def test_service_with_a_node_of_another_group(self):
        self._prepare({'': ['box', 'box-2', 'box-3'], 'rack-b': ['box-3']},
                      {'': 2, 'rack-b': 1})
        self.assertIn('still not true that box, box-2, box-3 are members',
                      self._fails())

    def test_nobody_to_kill(self):
        self._prepare({'a': ['box'], 'b': ['box-2'], 'c': ['box-3']},
                      {'a': 1, 'b': 1, 'c': 1})
        self.assertIn('No nova-compute has nodes that another could take',
                      self._fails())

    def test_service_that_is_not_there(self):
        self._prepare()
        self.cloud.box.root_run = lambda *argv: 'box\n'
        self.cloud.dead.add('box-2')
        self.assertIn('are members', self._fails())

    def test_node_that_is_on_its_way(self):
        self._prepare()
        nodes = self.cloud.nodes()
        services = self.cloud.services()
        self.assertTrue(self.checks.is_steady(services, nodes))
        nodes['n1']['Desired owner'] = 'box-3'
        self.assertFalse(self.checks.is_steady(services, nodes))
        # Those with instances stay.
        nodes['n1']['Instance'] = 's1'
        self.assertTrue(self.checks.is_steady(services, nodes))

    def test_node_that_is_missing(self):
        self._prepare()
        nodes = self.cloud.nodes()
        del nodes['n5']
        self.assertFalse(self.checks.is_steady(self.cloud.services(), nodes))

    def test_server_that_does_not_boot(self):
        self._prepare()
        self.cloud.status = 'ERROR'
        self.assertEqual(
            'The server nova-ironic-ring-check is ERROR, on 1 nodes: see the '
            'logs of nova-compute.', self._fails())

    def test_nodes_that_stay_with_the_dead(self):
        self._prepare()
        self.cloud.broken = True
        self.assertIn('still not true that the nodes of box-3 are with other '
                      'services', self._fails())

    def test_victim_has_no_server(self):
        self._prepare()
        self.assertEqual('box-2', self.checks._victim('box-3'))


class CloudTestCase(base.BaseTestCase):
    """What is run in the container."""

    def setUp(self):
        super().setUp()
        self.scripts: list[str] = []
        self.answer = '[]'
        self.useFixture(fixtures.MockPatchObject(
            container.Container, 'user_run',
            lambda box, script: self._user_run(script)))
        self.cloud = clouds.Cloud(container.Container(pathlib.Path('/none')))

    def _user_run(self, script: str) -> str:
        self.scripts.append(script.replace('/opt/stack/data/venv/bin/', ''))
        return self.answer

    def test_ring(self):
        self.answer = '[{"Host": "box", "Nodes": 3}]'
        self.assertEqual({'box': {'Host': 'box', 'Nodes': 3}},
                         self.cloud.services())
        self.answer = '[{"Node": "n1", "Owner": "box"}]'
        self.assertEqual({'n1': {'Node': 'n1', 'Owner': 'box'}},
                         self.cloud.nodes())
        self.assertEqual(['nova-ironic-ring show -f json',
                          'nova-ironic-ring node list -f json'], self.scripts)

    def test_openstack(self):
        self.assertEqual([], self.cloud.openstack('server', 'list'))
        self.cloud.do('baremetal', 'node', 'set', "a'b", system=True)
        self.assertEqual(
            ['openstack --os-cloud devstack-admin-demo server list -f json',
             'openstack --os-cloud devstack-system-admin baremetal node set '
             """'a'"'"'b'"""], self.scripts)

    def test_baremetal(self):
        for answer in ('[{"hostname": "box", "conductor_group": ""}]',
                       '[{"Hostname": "box", "Conductor Group": ""}]'):
            self.answer = answer
            self.assertEqual([{'hostname': 'box', 'conductor_group': ''}],
                             self.cloud.baremetal('conductor'))
        self.assertEqual(
            ['openstack --os-cloud devstack-system-admin baremetal conductor '
             'list -f json'] * 2, self.scripts)

    def test_until(self):
        self.useFixture(fixtures.MonkeyPatch(
            'nova_ironic_ring_tools.devstack.cloud._POLL', 0.01))
        said = [False, errors.DevstackError('busy'), True]

        def done() -> bool:
            answer = said.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        self.assertGreater(clouds.until('it is', 30, done), 0)
        said = [errors.DevstackError('busy')]
        self.assertEqual(
            'After 0 seconds it is still not true that it is.\nbusy',
            str(self.assertRaises(errors.DevstackError, clouds.until,
                                  'it is', 0, done)))
