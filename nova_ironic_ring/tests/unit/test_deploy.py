# SPDX-License-Identifier: Apache-2.0

import configparser
import contextlib
import http.server
import importlib.util
import io
import json
import pathlib
import re
import ssl
import threading
import types
from typing import Any
from unittest import mock

import fixtures
from oslotest import base
import yaml

from nova_ironic_ring.adapters import conf
from nova_ironic_ring.command import changing
from nova_ironic_ring.tests.fixtures import authority

_ROOT = pathlib.Path(__file__).parents[3]
_DEPLOY = _ROOT / 'deploy'
_KUBERNETES = _DEPLOY / 'kubernetes'


def _load(name: str, folder: pathlib.Path = _KUBERNETES / 'config'
          ) -> types.ModuleType:
    """Return a script, by default one of a pod, as a module."""
    spec = importlib.util.spec_from_file_location(
        name, folder / f'{name}.py')
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Nothing is to lie beside the files that are shipped.
    with fixtures.MonkeyPatch('sys.dont_write_bytecode', True):
        spec.loader.exec_module(module)
    return module


def _stateful_set() -> dict[str, Any]:
    return yaml.safe_load((_KUBERNETES / 'statefulset.yaml').read_text())


class _ServedTestCase(base.BaseTestCase):
    """Has a server that answers each request with the same."""

    def serve(self, answer: str, status: int = 200,
              tls: ssl.SSLContext | None = None) -> str:
        """Start the server.

        :param tls: what to serve with; None for without TLS
        :returns: its address
        """
        requests: list[tuple[str, str | None]] = []
        self.requests = requests

        class Handler(http.server.BaseHTTPRequestHandler):

            def do_GET(self) -> None:
                requests.append((self.path, self.headers['Authorization']))
                self.send_response(status)
                self.end_headers()
                self.wfile.write(answer.encode())

            def log_message(self, *_: object) -> None:
                """Do not print a line for each request."""

        server = http.server.HTTPServer(('127.0.0.1', 0), Handler)
        self.addCleanup(server.server_close)
        if tls:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)
        return (f'{"https" if tls else "http"}://127.0.0.1:'
                f'{server.server_port}')


class DashboardTestCase(base.BaseTestCase):

    def test_differences(self):
        checker = _load('dashboard', _DEPLOY / 'tests')
        ours = {'a': [{'b': 1, 'c': 2}, 3], 'd': {'e': None}}
        for theirs, expected in (
                (ours, []), ({**ours, 'more': 1}, []), ({}, ['.a', '.d']),
                ({'a': [{'b': 1}, 4], 'd': {'e': 0}},
                 ['.a[0].c', '.a[1]', '.d.e']),
                ({'a': [{}], 'd': []}, ['.a', '.d'])):
            self.assertEqual(
                expected, list(checker.differences(ours, theirs)))

    def test_what_is_lost_fails(self):
        checker = _load('dashboard', _DEPLOY / 'tests')
        path = self.useFixture(fixtures.TempDir()).join('it.json')
        pathlib.Path(path).write_text('{"a": 1}')
        with contextlib.redirect_stdout(io.StringIO()) as out:
            for theirs, status in (({'a': 1}, 0), ({}, 1)):
                with mock.patch.object(checker, 'read', return_value=theirs):
                    self.assertEqual(status, checker.main(path))
        self.assertEqual(f'{path}: Grafana does not know a.\n',
                         out.getvalue())


class ProbeTestCase(_ServedTestCase):

    def setUp(self):
        super().setUp()
        self.probe = _load('probe')
        self.output = self.useFixture(
            fixtures.StringStream('stdout')).stream
        self.useFixture(fixtures.MonkeyPatch('sys.stdout', self.output))

    def _ask(self, question: str, age: float, passes: float = 1) -> int:
        self.useFixture(fixtures.EnvironmentVariable(
            'METRICS_URL', self.serve(
                '# HELP nova_ironic_ring_heartbeat_age_seconds Since when.\n'
                f'nova_ironic_ring_heartbeat_age_seconds {age}\n'
                f'nova_ironic_ring_passes_total {passes}\n'
                'nova_ironic_ring_trust{trust="FULL"} 1.0\n'
                'python_info{version="3.11"} 1.0\n')))
        return self.probe.main(question)

    def test_alive_while_heartbeats_are_written(self):
        self.assertEqual(0, self._ask('alive', 90))
        self.assertEqual(1, self._ask('alive', 90.5))
        self.output.seek(0)
        self.assertIn('written 90 s ago', self.output.read())

    def test_ready_after_the_first_pass(self):
        self.assertEqual(0, self._ask('alive', 5, passes=0))
        self.assertEqual(1, self._ask('ready', 5, passes=0))
        self.assertEqual(0, self._ask('ready', 5, passes=1))
        self.assertEqual(1, self._ask('ready', 91, passes=1))

    def test_neither_before_the_first_heartbeat(self):
        self.useFixture(fixtures.EnvironmentVariable(
            'METRICS_URL', self.serve('nova_ironic_ring_passes_total 1.0\n')))
        for question in 'alive', 'ready':
            self.assertEqual(1, self.probe.main(question))
        self.output.seek(0)
        self.assertEqual(
            2, self.output.read().count('it has not started yet'))

    def test_limit_can_be_set(self):
        self.useFixture(
            fixtures.EnvironmentVariable('HEARTBEAT_LIMIT', '120'))
        self.assertEqual(0, self._ask('alive', 119))
        self.assertEqual(1, self._ask('alive', 121))

    def test_service_that_does_not_answer(self):
        for url in 'http://127.0.0.1:1', self.serve('nothing of it'), (
                self.serve('', status=500)):
            self.useFixture(fixtures.EnvironmentVariable('METRICS_URL', url))
            self.assertEqual(1, self.probe.main('alive'))
        self.output.seek(0)
        self.assertEqual(3, self.output.read().count('cannot be read'))

    def test_service_with_tls(self):
        signer = authority.Authority(
            self.useFixture(fixtures.TempDir()).path, 'ca')
        cert, key = signer.issue('server')
        with open(cert, 'a') as both:
            both.write(pathlib.Path(key).read_text())
        context = ssl.create_default_context(
            ssl.Purpose.CLIENT_AUTH, cafile=signer.path)
        context.load_cert_chain(cert)
        context.verify_mode = ssl.CERT_REQUIRED
        url = self.serve('nova_ironic_ring_heartbeat_age_seconds 1\n'
                         'nova_ironic_ring_passes_total 1\n', tls=context)
        # A name that the certificate does not have.
        self.useFixture(fixtures.EnvironmentVariable(
            'METRICS_URL', url.replace('127.0.0.1', 'localhost')))
        self.assertEqual(1, self.probe.main('alive'))
        self.useFixture(fixtures.EnvironmentVariable(
            'METRICS_CERT_FILE', cert))
        self.assertEqual(0, self.probe.main('alive'))

    def test_it_asks_for_metrics_that_there_are(self):
        page = (_ROOT / 'doc/source/monitoring.rst').read_text()
        for name in 'heartbeat_age_seconds', 'passes_total':
            self.assertIn(f'``{self.probe.PREFIX}{name}``', page)

    def test_it_asks_where_the_service_listens(self):
        ring = configparser.ConfigParser()
        ring.read(_KUBERNETES / 'config/ring.conf')
        self.assertEqual(f'http://{ring["ironic_ring"]["metrics_listen"]}'
                         '/metrics', self.probe.URL)

    def test_what_cannot_be_heard_ends_before_it_is_taken_for_dead(self):
        ring = configparser.ConfigParser()
        ring.read(_KUBERNETES / 'config/ring.conf')
        (container,) = _stateful_set()['spec']['template']['spec'][
            'containers']
        live = container['livenessProbe']
        # rpc_response_timeout is 60 by default.
        self.assertLess(
            self.probe.LIMIT + 60 + live['terminationGracePeriodSeconds']
            + live['failureThreshold'] * (
                live['periodSeconds'] + live['timeoutSeconds']),
            ring['ironic_ring'].getint('failover_after'))


class PreStopTestCase(_ServedTestCase):

    def setUp(self):
        super().setUp()
        self.prestop = _load('prestop')
        account = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        (account / 'token').write_text('secret\n')
        for name, value in (('ACCOUNT', str(account)),
                            ('POD_NAME', 'nova-compute-ironic-2'),
                            ('POD_NAMESPACE', 'openstack')):
            self.useFixture(fixtures.EnvironmentVariable(name, value))
        self.run = self.useFixture(fixtures.MockPatch(
            'subprocess.run', return_value=mock.Mock(returncode=0))).mock
        self.useFixture(fixtures.MonkeyPatch(
            'sys.stdout', self.useFixture(
                fixtures.StringStream('stdout')).stream))

    def _stop(self, status: int = 200, going: bool = False, **spec: Any
              ) -> int:
        """Stop a pod whose StatefulSet has this specification."""
        metadata = {'deletionTimestamp': 'now'} if going else {}
        self.useFixture(fixtures.EnvironmentVariable(
            'KUBERNETES_SERVER', self.serve(json.dumps(
                {'metadata': metadata, 'spec': spec}), status)))
        return self.prestop.main()

    def test_pod_that_comes_back_keeps_its_nodes(self):
        self.assertEqual(0, self._stop(replicas=3))
        self.run.assert_not_called()
        self.assertEqual(
            [('/apis/apps/v1/namespaces/openstack/statefulsets/'
              'nova-compute-ironic', 'Bearer secret')], self.requests)

    def test_pod_that_is_not_wanted_any_more_is_drained(self):
        for spec in ({'replicas': 2}, {'replicas': 0},
                     {'replicas': 3, 'ordinals': {'start': 3}}):
            self.run.reset_mock()
            self.assertEqual(0, self._stop(**spec))
            (arguments,) = self.run.call_args.args
            self.assertEqual(
                ['nova-ironic-ring', '--config-file',
                 '/etc/nova-ironic-ring-command/nova.conf', 'drain',
                 'nova-compute-ironic-2', '--instances', '--timeout', '600',
                 '--yes', '--reason', 'its pod is removed'], arguments)

    def test_first_pod_may_have_another_number(self):
        self.assertEqual(0, self._stop(replicas=2, ordinals={'start': 1}))
        self.run.assert_not_called()

    def test_drain_without_instances(self):
        self.useFixture(fixtures.EnvironmentVariable('DRAIN_ARGUMENTS', ''))
        self._stop(replicas=2)
        self.assertNotIn('--instances', self.run.call_args.args[0])

    def test_drain_that_fails(self):
        self.run.return_value.returncode = 1
        self.assertEqual(1, self._stop(replicas=2))

    def test_all_pods_go(self):
        self.assertEqual(0, self._stop(replicas=3, going=True))
        self.assertEqual(0, self._stop(replicas=0, going=True))
        self.run.assert_not_called()

    def test_nobody_says_how_many_there_are_to_be(self):
        for status in 403, 404:
            self.assertEqual(0, self._stop(status=status, replicas=0))
        self.useFixture(fixtures.EnvironmentVariable(
            'KUBERNETES_SERVER', 'http://127.0.0.1:1'))
        self.assertEqual(0, self.prestop.main())
        self.run.assert_not_called()

    def test_command_knows_what_it_is_told(self):
        arguments = self.prestop.command('host')
        parser = changing.Drain(mock.Mock(), None).get_parser('drain')
        parsed = parser.parse_args(arguments[arguments.index('drain') + 1:])
        self.assertEqual(('host', True, 600, True), (
            parsed.host, parsed.instances, parsed.timeout, parsed.yes))

    def test_there_is_time_for_it(self):
        ring = configparser.ConfigParser()
        ring.read(_KUBERNETES / 'config/ring.conf')
        self.assertGreater(
            _stateful_set()['spec']['template']['spec'][
                'terminationGracePeriodSeconds'],
            self.prestop.TIMEOUT + ring['DEFAULT'].getint(
                'graceful_shutdown_timeout'))


class ManifestsTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.kustomization = yaml.safe_load(
            (_KUBERNETES / 'kustomization.yaml').read_text())
        self.documents = [
            document for name in self.kustomization['resources']
            for document in yaml.safe_load_all(
                (_KUBERNETES / name).read_text())]

    def test_every_file_is_used(self):
        self.assertEqual(
            {path.name for path in _KUBERNETES.glob('*.yaml')},
            {'kustomization.yaml', *self.kustomization['resources']})
        (made,) = self.kustomization['configMapGenerator']
        self.assertEqual(
            {f'config/{path.name}' for path
             in (_KUBERNETES / 'config').iterdir() if path.is_file()},
            set(made['files']))

    def test_name_that_is_replaced_is_that_of_nothing_else(self):
        (made,) = self.kustomization['configMapGenerator']
        self.assertNotIn(made['name'], {
            document['metadata']['name'] for document in self.documents})
        volumes = {volume['name']: volume for volume
                   in _stateful_set()['spec']['template']['spec']['volumes']}
        self.assertEqual(made['name'], volumes['ring']['configMap']['name'])

    def test_pod_may_ask_for_its_stateful_set(self):
        (role,) = [document for document in self.documents
                   if document['kind'] == 'Role']
        self.assertEqual(
            [{'apiGroups': ['apps'], 'resources': ['statefulsets'],
              'resourceNames': [_stateful_set()['metadata']['name']],
              'verbs': ['get']}], role['rules'])

    def test_host_is_the_name_of_the_pod(self):
        (container,) = _stateful_set()['spec']['template']['spec'][
            'containers']
        (host,) = [each for each in container['env']
                   if each['name'] == 'OS_DEFAULT__HOST']
        self.assertEqual('metadata.name',
                         host['valueFrom']['fieldRef']['fieldPath'])


class UnitsTestCase(base.BaseTestCase):

    def test_systemd_gives_up_on_units_of_others_as_well(self):
        unit, more = (configparser.ConfigParser(
            strict=False, interpolation=None) for _ in range(2))
        path = _DEPLOY / 'systemd/nova-compute-ironic@.service'
        unit.read(path)
        more.read(path.with_name(f'{path.name}.d') / 'fence.conf')
        for option in 'StartLimitIntervalSec', 'StartLimitBurst':
            self.assertEqual(unit['Unit'][option], more['Unit'][option])
        # They are started again, and ended, as ours is.
        for option in ('NotifyAccess', 'Restart', 'RestartSec',
                       'TimeoutStartSec', 'TimeoutStopSec', 'Type'):
            self.assertEqual(unit['Service'][option], more['Service'][option])

    def test_openstack_ansible_has_the_same_lines(self):
        more = configparser.ConfigParser(strict=False, interpolation=None)
        setattr(more, 'optionxform', str)
        more.read(
            _DEPLOY / 'systemd/nova-compute-ironic@.service.d/fence.conf')
        page = (_ROOT / 'doc/source/deploy/openstack-ansible.rst').read_text()
        (shown,) = re.findall(
            r'    nova_compute_init_overrides:\n(?:      .*\n)+', page)
        # The name of the container is that of the service.
        self.assertEqual(
            {section: {name: value.replace('%i', '%H')
                       for name, value in more[section].items()}
             for section in more.sections()},
            {section: {name: str(value) for name, value in values.items()}
             for section, values in yaml.safe_load(
                 shown)['nova_compute_init_overrides'].items()})

    def test_files_that_the_guides_name_are_there(self):
        for page in (_ROOT / 'doc/source/deploy').glob('*.rst'):
            for name in re.findall(r'(?<![\w/])(?:deploy|config)/[\w@./-]+\w',
                                   page.read_text()):
                # A Deployment of Kubernetes is called so by kubectl.
                self.assertTrue(
                    (_ROOT / name).exists() or (_KUBERNETES / name).exists()
                    or name == 'deploy/nova-ironic-ring',
                    f'{name} in {page.name}')


class AddressTestCase(base.BaseTestCase):

    def test_only_the_package_says_where_the_project_is(self):
        files = [_ROOT / '.zuul.yaml', *_ROOT.glob('*.rst'),
                 *_ROOT.glob('*.toml'), *_ROOT.glob('*.cfg')]
        for folder in ('contrib', 'debian', 'deploy', 'devstack', 'doc/source',
                       'etc', 'nova_ironic_ring', 'playbooks',
                       'releasenotes/notes', 'tools'):
            files += (_ROOT / folder).rglob('*')
        # But for those of nowhere, which stand for one.
        address = re.compile(
            r'//(?![\w.-]*(?:example\.\w+|localhost)\b)[\w-]+\.[\w.:-]+/'
            r'[\w/.-]*nova-ironic-ring\b')
        self.assertIn(_KUBERNETES / 'statefulset.yaml', files)
        self.assertEqual([], [
            str(path) for path in files if path.is_file()
            and address.search(path.read_text(errors='ignore'))])


class OptionsTestCase(base.BaseTestCase):
    """The options that the files set are those that there are."""

    def _see(self, options: dict[str, Any]) -> None:
        known = {option.name: option for option in conf.ring_opts}
        self.assertTrue(options)
        for name, value in options.items():
            self.assertIn(name, known)
            # Raises ValueError.
            known[name].type(str(value))

    def test_files_of_options(self):
        for path in ('kubernetes/config/ring.conf',
                     'kolla/config/nova/nova-compute-ironic.conf'):
            found = configparser.ConfigParser()
            found.read(_DEPLOY / path)
            common = found.defaults()
            self._see({name: value for name, value
                       in found['ironic_ring'].items() if name not in common})
            self.assertEqual('ironic_ring.IronicRingDriver',
                             common['compute_driver'])

    def test_placement_tries_once(self):
        for path in ('kolla/config/placement.conf',
                     'openstack-ansible/'
                     'user_variables_nova_ironic_ring.yml',
                     'openstack-helm/placement.yaml'):
            self.assertRegex((_DEPLOY / path).read_text(),
                             r'\ballocation_conflict_retry_count(:| =) 1\n')

    def test_files_of_values(self):
        helm = yaml.safe_load(
            (_DEPLOY / 'openstack-helm/nova-ironic-ring.yaml').read_text())
        ansible = yaml.safe_load(
            (_DEPLOY / 'openstack-ansible/group_vars/ironic_compute.yml'
             ).read_text())
        for found in (helm['conf']['nova_ironic'],
                      ansible['nova_nova_conf_overrides']):
            self._see(found['ironic_ring'])
            self.assertEqual('ironic_ring.IronicRingDriver',
                             found['DEFAULT']['compute_driver'])
