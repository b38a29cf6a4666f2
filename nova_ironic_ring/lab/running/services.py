# SPDX-License-Identifier: Apache-2.0

"""The OpenStack services of a lab, each a fixture.

A service writes its configuration and starts when it is set up; ``wait``
returns when it answers. Each gets only the options that it needs to run on
loopback. To run a service in production, read its own documentation.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
import configparser
import contextlib
from importlib import metadata
import pathlib
import sys
import urllib.error
import urllib.request

from cryptography import fernet
import fixtures
import yaml

from nova_ironic_ring.lab.running import backends
from nova_ironic_ring.lab.running import process
from nova_ironic_ring.lab.running import schema
from nova_ironic_ring.lab.running import state as lab_state
from nova_ironic_ring.lab import waiting

Sections = Mapping[str, Mapping[str, object]]

_START_TIMEOUT = 180
_POLL = 0.1
REGION = 'lab'
#: The value of service_down_time in nova.conf, in seconds.
DOWN_TIME = 8
#: Seconds between two passes of the resource tracker.
PASS_INTERVAL = 5
#: The deploy interface of nodes that can have volumes; see the plugins.
DEPLOY_INTERFACE = 'ironic-ring-lab'
#: Cinder's type in the catalog.
VOLUME_SERVICE = 'block-storage'
_BACKEND = 'nowhere'
#: What the provider.yaml of a nova-compute adds to its resource providers.
PROVIDED_CLASS = 'CUSTOM_LICENSE'
PROVIDED_TRAIT = 'CUSTOM_LICENSED'
# Before this release, Nova cannot update a service with several nodes if a
# provider.yaml adds an inventory to all of them.
_PROVIDES_TO_SEVERAL = 34


def program(name: str) -> str:
    """Return the path of a program of this virtual environment."""
    return str(pathlib.Path(sys.prefix, 'bin', name))


def plugins() -> dict[str, str]:
    """Return the variable that makes a service find the lab's own drivers.

    Their entry points are not in the package: only labs are to see them.
    """
    return {'PYTHONPATH': str(pathlib.Path(__file__).parents[1] / 'plugins')}


def write_config(path: pathlib.Path, *sections: Sections) -> pathlib.Path:
    """Write an oslo.config file.

    :param path: where to
    :param sections: options by section; the later ones replace the former
    :returns: the path
    """
    parser = configparser.RawConfigParser()
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    for each in sections:
        parser.read_dict(each)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, 'w') as file:
        parser.write(file)
    path.chmod(0o600)
    return path


class Context:
    """What all services need: the lab and its backends."""

    def __init__(self, state: lab_state.State, database: backends.MariaDB,
                 broker: backends.RabbitMQ) -> None:
        """Choose the lab and its backends.

        :param state: the lab's settings
        :param database: a server that is ready
        :param broker: a broker, ready or not
        """
        self.state = state
        self.database = database
        self.broker = broker
        self.etc = state.directory / 'etc'
        self.data = state.directory / 'data'

    def credentials(self, user: str) -> dict[str, object]:
        """Return how a service logs in to Keystone.

        :param user: the service's own account
        """
        return {
            'auth_type': 'password',
            'auth_url': self.state.url('keystone') + '/v3',
            'username': user,
            'password': self.state.secret,
            'user_domain_name': 'Default',
            'project_name': 'service',
            'project_domain_name': 'Default',
            'region_name': REGION,
        }

    def logging(self) -> dict[str, object]:
        """Return the options that make a service log to its output."""
        return {
            'use_stderr': True,
            # Everything of this project, and of the others what an operator
            # sees by default.
            'default_log_levels': 'nova_ironic_ring=DEBUG,amqp=WARN,'
                                  'sqlalchemy=WARN,keystonemiddleware=WARN'}


class Service(fixtures.Fixture):
    """One process of OpenStack."""

    def __init__(self, context: Context, name: str) -> None:
        """Name the service.

        :param context: what services are given
        :param name: its name in the lab
        """
        super().__init__()
        self.context = context
        self.name = name
        self.etc = context.etc / name
        self.process: process.Process = context.state.process(name)

    def _setUp(self) -> None:
        self.configure()
        # Killed, not stopped: nothing of the service is to be kept.
        self.addCleanup(self.process.kill)
        self.process.start()

    def configure(self) -> None:
        """Write the configuration and define the process."""
        raise NotImplementedError


class Api(Service):
    """A service with a REST API."""

    def migrations(self) -> list[Sequence[str]]:
        """Return the commands that make the service's schema."""
        return []

    def serve(self, application: str, env: Mapping[str, str],
              *arguments: str) -> None:
        """Define a WSGI application as the process.

        :param application: its module
        :param env: environment variables that name its configuration
        :param arguments: command line arguments that name its configuration
        """
        port = self.context.state.ports[self.name]
        self.process.define(
            [sys.executable, '-m', 'nova_ironic_ring.lab.inside.wsgi',
             application, str(port), *arguments], env)

    def wait(self) -> None:
        """Wait until the API answers.

        :raises LabError: if the service dies or takes too long
        """
        url = self.context.state.url(self.name) + '/'
        # Without a proxy, and only while the service itself listens on the
        # port: another program may have taken it.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        port = self.context.state.ports[self.name]

        def answers() -> bool:
            self.process.check()
            if not self.process.listens(port):
                return False
            try:
                opener.open(url, timeout=10).close()
            except urllib.error.HTTPError as answer:
                answer.close()
                return answer.code < 500
            except OSError:
                return False
            return True

        if not waiting.until(answers, _START_TIMEOUT, _POLL):
            raise self.process.trouble(
                f'does not answer on {url} after {_START_TIMEOUT} s')


class Keystone(Api):
    """Identity."""

    def __init__(self, context: Context) -> None:
        super().__init__(context, 'keystone')
        self.conf = self.etc / 'keystone.conf'

    def configure(self) -> None:
        keys = self.context.data / 'keystone'
        write_config(self.conf, {
            'DEFAULT': self.context.logging(),
            'database': {'connection': self.context.database.url('keystone')},
            'fernet_tokens': {'key_repository': keys / 'fernet'},
            'fernet_receipts': {'key_repository': keys / 'fernet'},
            'credential': {'key_repository': keys / 'credential'},
            'identity': {'password_hash_rounds': 4},
            # Keystone checks the token of every request to every service.
            'cache': {'enabled': True, 'backend': 'dogpile.cache.memory'},
        })
        self.serve('keystone.wsgi.api',
                   {'OS_KEYSTONE_CONFIG_FILES': str(self.conf)})

    def migrations(self) -> list[Sequence[str]]:
        return [('keystone-manage', '--config-file', str(self.conf),
                 'db_sync')]

    def make_keys(self) -> None:
        """Make the keys that tokens are encrypted with.

        https://docs.openstack.org/keystone/latest/admin/fernet-token-faq
        describes them. keystone-manage could make them, but takes seconds.
        """
        repository = self.context.data / 'keystone' / 'fernet'
        repository.mkdir(mode=0o700, parents=True)
        for index in range(2):
            (repository / str(index)).write_bytes(
                fernet.Fernet.generate_key())

    def bootstrap(self) -> None:
        """Make the administrator's account.

        :raises LabError: if Keystone refuses
        """
        url = self.context.state.url('keystone') + '/v3'
        schema.run(
            self.context.state.directory,
            ('keystone-manage', '--config-file', str(self.conf), 'bootstrap',
             '--bootstrap-region-id', REGION, '--bootstrap-public-url', url,
             '--bootstrap-internal-url', url),
            # Every user of the machine could read an argument.
            env={'OS_BOOTSTRAP_PASSWORD': self.context.state.secret})


class Glance(Api):
    """Images."""

    def __init__(self, context: Context) -> None:
        super().__init__(context, 'glance')
        self.conf = self.etc / 'glance-api.conf'

    def configure(self) -> None:
        write_config(self.conf, {
            'DEFAULT': self.context.logging() | {
                'enabled_backends': 'file:file'},
            'database': {'connection': self.context.database.url('glance')},
            'keystone_authtoken': self.context.credentials('glance'),
            'paste_deploy': {
                'flavor': 'keystone',
                'config_file': pathlib.Path(
                    sys.prefix, 'etc', 'glance', 'glance-api-paste.ini')},
            'glance_store': {'default_backend': 'file'},
            'file': {'filesystem_store_datadir':
                     self.context.data / 'glance' / 'images'},
            'os_glance_staging_store': {
                'filesystem_store_datadir':
                    self.context.data / 'glance' / 'staging'},
            'os_glance_tasks_store': {
                'filesystem_store_datadir':
                    self.context.data / 'glance' / 'tasks'},
        })
        self.serve('glance.wsgi.api',
                   {'OS_GLANCE_CONFIG_DIR': str(self.etc)})

    def migrations(self) -> list[Sequence[str]]:
        return [('glance-manage', '--config-file', str(self.conf), 'db_sync')]


class Neutron(Api):
    """Networks. The lab has none, but Nova asks for ports all the same."""

    def __init__(self, context: Context) -> None:
        super().__init__(context, 'neutron')
        self.conf = self.etc / 'neutron.conf'

    def configure(self) -> None:
        write_config(self.conf, {
            'DEFAULT': self.context.logging() | {
                'core_plugin': 'ml2',
                'service_plugins': '',
                'transport_url': self.context.broker.url,
                'state_path': self.context.data / 'neutron',
                'api_paste_config': pathlib.Path(
                    sys.prefix, 'etc', 'neutron', 'api-paste.ini')},
            'oslo_concurrency': {
                'lock_path': self.context.data / 'neutron' / 'lock'},
            'database': {'connection': self.context.database.url('neutron')},
            'keystone_authtoken': self.context.credentials('neutron'),
            'ml2': {'type_drivers': 'local', 'tenant_network_types': 'local',
                    'mechanism_drivers': 'ironic_ring_lab'},
        })
        self.serve('nova_ironic_ring.lab.inside.neutron', {
            **plugins(),
            'OS_NEUTRON_CONFIG_DIR': str(self.etc),
            'OS_NEUTRON_CONFIG_FILES': 'neutron.conf'})

    def migrations(self) -> list[Sequence[str]]:
        return [('neutron-db-manage', '--config-file', str(self.conf),
                 'upgrade', 'heads')]


class Placement(Api):
    """Resource providers."""

    def __init__(self, context: Context) -> None:
        super().__init__(context, 'placement')

    def configure(self) -> None:
        write_config(self.etc / 'placement.conf', {
            'DEFAULT': self.context.logging(),
            'placement_database': {
                'connection': self.context.database.url('placement')},
            # Placement would try again in the same transaction, which does not
            # show the allocation that caused the conflict: two instances would
            # get one node. Nova tries again as well, and gets another node.
            'placement': {'allocation_conflict_retry_count': 1},
            'keystone_authtoken': self.context.credentials('placement'),
        })
        self.serve('nova_ironic_ring.lab.inside.placement',
                   {'OS_PLACEMENT_CONFIG_DIR': str(self.etc)})

    def migrations(self) -> list[Sequence[str]]:
        return [('placement-manage', '--config-dir', str(self.etc),
                 'db', 'sync')]


class Cinder(Api):
    """Volumes."""

    def __init__(self, context: Context) -> None:
        super().__init__(context, 'cinder')
        self.conf = self.etc / 'cinder.conf'

    def configure(self) -> None:
        data = self.context.data / 'cinder'
        data.mkdir(parents=True, exist_ok=True)
        write_config(self.conf, {
            'DEFAULT': self.context.logging() | {
                'transport_url': self.context.broker.url,
                'auth_strategy': 'keystone',
                'host': 'cinder',
                'my_ip': '127.0.0.1',
                'state_path': data,
                'enabled_backends': _BACKEND,
                'periodic_fuzzy_delay': 0,
                'glance_api_servers': self.context.state.url('glance'),
                'api_paste_config': pathlib.Path(
                    sys.prefix, 'etc', 'cinder', 'api-paste.ini'),
                'resource_query_filters_file': pathlib.Path(
                    sys.prefix, 'etc', 'cinder', 'resource_filters.json')},
            _BACKEND: {
                'volume_backend_name': _BACKEND,
                'volume_driver':
                    'nova_ironic_ring.lab.inside.volume_driver.'
                    'LabVolumeDriver'},
            'oslo_concurrency': {'lock_path': data / 'lock'},
            'database': {'connection': self.context.database.url('cinder')},
            'keystone_authtoken': self.context.credentials('cinder') | {
                # Only Nova may detach what Nova has attached.
                'service_token_roles': 'service',
                'service_token_roles_required': True},
        })
        self.serve('cinder.wsgi.api', {}, '--config-file', str(self.conf))

    def migrations(self) -> list[Sequence[str]]:
        return [('cinder-manage', '--config-file', str(self.conf),
                 'db', 'sync')]


class CinderWorker(Service):
    """cinder-scheduler or cinder-volume."""

    def __init__(self, cinder: Cinder, name: str) -> None:
        """Name the service.

        :param cinder: the API that it works for
        :param name: its program's name
        """
        super().__init__(cinder.context, name)
        self.cinder = cinder

    def configure(self) -> None:
        self.process.define(
            [program(self.name), '--config-file', str(self.cinder.conf)])


class Ironic(Api):
    """Bare metal: API and conductor in one process, with fake hardware."""

    def __init__(self, context: Context, alone: bool = True,
                 overrides: Sections | None = None) -> None:
        """Set whether there are other conductors, and what it is to do.

        :param context: what services are given
        :param alone: whether there are no other conductors
        :param overrides: options by section, such as the seconds that a power
            action takes in ``[fake] power_delay``
        """
        super().__init__(context, 'ironic')
        self.overrides = overrides or {}
        self.conf = self.etc / 'ironic.conf'
        self.policy = self.etc / 'policy.yaml'
        self.alone = alone

    def set_policy(self, rules: Mapping[str, str]) -> None:
        """Write Ironic's policy, which it also reads while it runs.

        :param rules: the rules that differ from the defaults, by name
        """
        self.policy.write_text(yaml.safe_dump(dict(rules)))

    @contextlib.contextmanager
    def hidden(self, nodes: Collection[str]) -> Iterator[None]:
        """Hide nodes from all but the operator, as a wrong policy would.

        :param nodes: their UUIDs
        """
        with self.context.database.connect('ironic') as opened, \
                opened.cursor() as cursor:
            cursor.execute('SELECT owner, uuid FROM nodes')
            owners = cursor.fetchall()
            cursor.execute("SELECT id FROM keystone.project "
                           "WHERE name = 'service'")
            ((project,),) = cursor.fetchall()
            change = 'UPDATE nodes SET owner = %s WHERE uuid = %s'
            cursor.executemany(change, [
                (project, node) for _, node in owners if node not in nodes])
            self.set_policy({
                'baremetal:node:list': '',
                'baremetal:node:list_all': '!',
                'baremetal:node:get': 'project_id:%(node.owner)s'})
            try:
                yield
            finally:
                self.set_policy({})
                cursor.executemany(change, owners)

    def restart(self) -> None:
        """Restart the service with its new configuration.

        :raises LabError: if it does not come up
        """
        self.process.kill()
        self.configure()
        self.process.start()
        self.wait()

    def configure(self) -> None:
        interfaces = {f'enabled_{kind}_interfaces': 'fake' for kind in (
            'bios', 'boot', 'console', 'firmware', 'inspect', 'management',
            'power', 'raid', 'rescue', 'vendor')}
        write_config(self.conf, {
            'DEFAULT': self.context.logging() | interfaces | {
                'enabled_hardware_types': 'fake-hardware',
                'enabled_deploy_interfaces': f'fake,{DEPLOY_INTERFACE}',
                'default_deploy_interface': 'fake',
                # Several conductors speak to each other through the broker.
                'rpc_transport': 'none' if self.alone else 'oslo',
                'transport_url': self.context.broker.url,
                # Nova's account sees all nodes, not only its project's.
                'rbac_service_role_elevated_access': True,
                'auth_strategy': 'keystone',
                'host': 'ironic',
                'my_ip': '127.0.0.1',
                'enabled_network_interfaces': 'flat,noop',
                'default_network_interface': 'noop',
                'enabled_storage_interfaces': 'cinder,noop',
                'default_storage_interface': 'noop',
                'state_path': self.context.data / 'ironic'},
            'api': {'host_ip': '127.0.0.1',
                    'port': self.context.state.ports['ironic'],
                    'api_workers': 1},
            'conductor': {'automated_clean': False},
            'database': {'connection': self.context.database.url('ironic')},
            'keystone_authtoken': self.context.credentials('ironic'),
            # Ironic asks Glance for the kind of an image when a server is
            # rebuilt.
            'glance': self.context.credentials('ironic') | {
                'region_name': REGION},
            # Ironic binds the ports of servers on nodes with the network
            # interface "flat".
            'neutron': self.context.credentials('ironic') | {
                'region_name': REGION},
            'cinder': self.context.credentials('ironic') | {
                'region_name': REGION, 'service_type': VOLUME_SERVICE,
                'action_retries': 1, 'action_retry_interval': 1},
            'oslo_concurrency': {
                'lock_path': self.context.data / 'ironic' / 'lock'},
            'oslo_policy': {'policy_file': self.policy},
        }, self.overrides)
        self.set_policy({})
        self.process.define(
            [program('ironic'), '--config-file', str(self.conf)],
            plugins())

    def migrations(self) -> list[Sequence[str]]:
        return [('ironic-dbsync', '--config-file', str(self.conf),
                 'create_schema')]


class IronicConductor(Service):
    """A conductor for a conductor group."""

    def __init__(self, ironic: Ironic, group: str) -> None:
        """Name the group.

        :param ironic: the Ironic that it belongs to
        :param group: the conductor group's name
        """
        super().__init__(ironic.context, f'ironic-conductor-{group}')
        self.ironic = ironic
        self.group = group
        self.conf = ironic.etc / f'{self.name}.conf'

    def configure(self) -> None:
        write_config(self.conf, {
            'DEFAULT': {'host': self.name},
            'conductor': {'conductor_group': self.group}})
        self.process.define([
            program('ironic-conductor'),
            '--config-file', str(self.ironic.conf),
            '--config-file', str(self.conf)], plugins())


class NovaConfig:
    """The configuration that all of Nova's processes share."""

    def __init__(self, context: Context) -> None:
        """Name the files.

        :param context: what services are given
        """
        self.context = context
        self.etc = context.etc / 'nova'
        #: The file for all of them.
        self.common = self.etc / 'nova.conf'
        #: The file for those that may use the database: not nova-compute.
        self.controller = self.etc / 'nova-controller.conf'
        #: The file for nova-ironic-ring, which does not log to the terminal.
        self.operator = self.etc / 'nova-ironic-ring.conf'

    def write(self, more: Sections | None = None) -> None:
        """Write the files.

        :param more: options by section, of sections that are not written
            otherwise
        """
        context = self.context
        write_config(self.common, {
            **(more or {}),
            'DEFAULT': context.logging() | {
                'transport_url': context.broker.url,
                'state_path': context.data / 'nova',
                'my_ip': '127.0.0.1',
                # So that the ring changes soon after each event.
                'report_interval': 2,
                'service_down_time': DOWN_TIME,
                # Fake hardware does everything soon, so nothing takes long.
                'graceful_shutdown_timeout': 10,
                'manager_shutdown_timeout': 5,
                'update_resources_interval': PASS_INTERVAL,
                'running_deleted_instance_poll_interval': 10,
                'periodic_fuzzy_delay': 0},
            'oslo_concurrency': {'lock_path': context.data / 'nova' / 'lock'},
            'api': {'auth_strategy': 'keystone'},
            'keystone_authtoken': context.credentials('nova'),
            'service_user': context.credentials('nova') | {
                'send_service_user_token': True},
            'placement': context.credentials('nova') | {'timeout': 30},
            'neutron': context.credentials('nova'),
            'ironic': context.credentials('nova') | {
                # Ironic's own work on a node, which conflicts with Nova's,
                # ends soon here.
                'api_retry_interval': 1},
            'glance': {'region_name': REGION},
            'cinder': context.credentials('nova') | {
                'os_region_name': REGION,
                'catalog_info': f'{VOLUME_SERVICE}::publicURL'},
            'vnc': {'enabled': False},
            'conductor': {'workers': 1},
            'scheduler': {'workers': 1,
                          'enable_isolated_aggregate_filtering': True},
            'quota': {'driver': 'nova.quota.NoopQuotaDriver'},
        })
        write_config(self.controller, {
            'database': {'connection': context.database.url('nova')},
            'api_database': {'connection': context.database.url('nova_api')},
        })
        write_config(self.operator, {'DEFAULT': {
            'use_stderr': False,
            'log_dir': context.state.directory / 'log'}})

    def providers(self, name: str) -> pathlib.Path:
        """Return the directory with the provider.yaml of a nova-compute.

        :param name: its host name
        """
        return self.etc / 'providers' / name

    def provide(self, name: str) -> None:
        """Let a nova-compute add an inventory and a trait in Placement.

        This does nothing with a Nova that cannot do so.

        :param name: its host name
        """
        release, *_ = metadata.version('nova').split('.')
        if int(release) < _PROVIDES_TO_SEVERAL:
            return
        directory = self.providers(name)
        directory.mkdir(parents=True, exist_ok=True)
        (directory / 'provider.yaml').write_text(yaml.safe_dump({
            'meta': {'schema_version': '1.0'},
            'providers': [{
                'identification': {'uuid': '$COMPUTE_NODE'},
                'inventories': {'additional': [
                    {PROVIDED_CLASS: {'total': 100}}]},
                'traits': {'additional': [PROVIDED_TRAIT]}}]}))

    @property
    def ring(self) -> tuple[str, ...]:
        """The beginning of a nova-ironic-ring command."""
        _, *files = self.manage
        return ('nova-ironic-ring', *files,
                '--config-file', str(self.operator))

    @property
    def manage(self) -> tuple[str, ...]:
        """The beginning of a nova-manage command."""
        return ('nova-manage', '--config-file', str(self.common),
                '--config-file', str(self.controller))

    def migrations(self) -> list[Sequence[str]]:
        """Return the commands that make the schema and map the cells.

        The cells' URLs are templates, which Nova fills in from its
        configuration: the schema can then serve another lab.
        """
        database = '{scheme}://{username}@{hostname}/%s?{query}'
        broker = '{scheme}://{username}:{password}@{hostname}:{port}/'
        return [
            (*self.manage, 'api_db', 'sync'),
            (*self.manage, 'cell_v2', 'map_cell0',
             '--database_connection', database % 'nova_cell0'),
            (*self.manage, 'cell_v2', 'create_cell', '--name', 'cell1',
             '--database_connection', database % 'nova',
             '--transport-url', broker),
            (*self.manage, 'db', 'sync'),
        ]


class NovaApi(Api):
    """Nova's API."""

    def __init__(self, config: NovaConfig) -> None:
        super().__init__(config.context, 'nova')
        self.config = config

    def configure(self) -> None:
        files = (pathlib.Path(sys.prefix, 'etc', 'nova', 'api-paste.ini'),
                 self.config.common, self.config.controller)
        self.serve('nova.wsgi.osapi_compute', {
            'OS_NOVA_CONFIG_DIR': str(self.config.etc),
            'OS_NOVA_CONFIG_FILES': ';'.join(map(str, files))})


class NovaController(Service):
    """nova-conductor or nova-scheduler."""

    def __init__(self, config: NovaConfig, name: str) -> None:
        super().__init__(config.context, name)
        self.config = config

    def configure(self) -> None:
        run = [program(self.name)] if self.name != 'nova-conductor' else [
            sys.executable, '-m', 'nova_ironic_ring.lab.inside.conductor']
        self.process.define([
            *run, '--config-file', str(self.config.common),
            '--config-file', str(self.config.controller)])


class NovaCompute(Service):
    """A nova-compute, whose host name is its name in the lab."""

    def __init__(self, config: NovaConfig, name: str,
                 overrides: Sections | None = None,
                 env: Mapping[str, str] | None = None) -> None:
        """Name the service.

        :param config: Nova's configuration
        :param name: its name
        :param overrides: options by section, for it alone
        :param env: variables to add to its environment
        """
        super().__init__(config.context, name)
        self.config = config
        self.conf = config.etc / f'{name}.conf'
        self.overrides = overrides or {}
        self.env = env or {}

    def configure(self) -> None:
        self.write()
        (self.config.context.data / self.name).mkdir(
            parents=True, exist_ok=True)
        self.process.define([
            program('nova-compute'), '--config-file', str(self.config.common),
            '--config-file', str(self.conf)], self.env)

    def write(self) -> None:
        """Write the configuration file that is its own."""
        sections: dict[str, dict[str, object]] = {
            section: dict(options)
            for section, options in self.overrides.items()}
        state = self.config.context.state
        sections['DEFAULT'] = {
            'host': self.name,
            'compute_driver': state.driver,
            'state_path': self.config.context.data / self.name,
        } | sections.get('DEFAULT', {})
        sections['compute'] = {
            'provider_config_location': self.config.providers(self.name),
        } | sections.get('compute', {})
        write_config(self.conf, sections)
