# SPDX-License-Identifier: Apache-2.0

"""What users find in the lab's cloud: accounts, an image, flavors.

Everything is done through the public APIs, as on any cloud.
"""

import functools
from typing import TYPE_CHECKING

from openstack import exceptions as sdk_exceptions
import yaml

from nova_ironic_ring.lab.running import services
from nova_ironic_ring.lab.running import state as lab_state
from nova_ironic_ring.lab import shapes

if TYPE_CHECKING:
    from openstack import connection
    import requests

#: The entry of clouds.yaml for the project's administrator.
CLOUD = 'lab'
#: The entry for the administrator of the whole system.
SYSTEM_CLOUD = 'lab-system'

IMAGE = 'none'
FLAVOR = shapes.USUAL.resource_class
#: The availability zones. Services that share nodes have to share the zone:
#: all are in the first one until somebody moves them.
ZONES = ('zone-1', 'zone-2')
#: The aggregate whose hosts are only for servers that ask for fast disks. At
#: first, it has no hosts.
ISOLATED = 'nvme'

# How often a request is sent again whose connection was closed.
_RETRIES = 2
_CATALOG = {
    'glance': ('image', ''),
    'neutron': ('network', ''),
    'placement': ('placement', ''),
    'nova': ('compute', '/v2.1'),
    'ironic': ('baremetal', ''),
    'cinder': (services.VOLUME_SERVICE, '/v3'),
}


def write_clouds(state: lab_state.State) -> None:
    """Write clouds.yaml into the lab's directory.

    :param state: the lab's settings
    """
    account = {
        'auth_url': state.url('keystone') + '/v3',
        'username': 'admin',
        'password': state.secret,
        'user_domain_name': 'Default',
    }
    in_project = account | {'project_name': 'admin',
                            'project_domain_name': 'Default'}
    path = state.directory / 'clouds.yaml'
    path.write_text(yaml.safe_dump({'clouds': {
        CLOUD: {'auth': in_project, 'region_name': services.REGION},
        SYSTEM_CLOUD: {'auth': account | {'system_scope': 'all'},
                       'region_name': services.REGION},
    }}))
    path.chmod(0o600)


def variables(state: lab_state.State) -> dict[str, str]:
    """Return the environment variables that lead a program to the lab's cloud.

    :param state: the lab's settings
    """
    return {'OS_CLIENT_CONFIG_FILE': str(state.directory / 'clouds.yaml'),
            'OS_CLOUD': CLOUD}


def connect(state: lab_state.State, cloud: str = CLOUD,
            **account: str) -> 'connection.Connection':
    """Log in to the lab's cloud.

    :param state: the lab's settings
    :param cloud: the entry of clouds.yaml
    :param account: what differs from the account of that entry, such as
        ``username``
    """
    # Most commands of the lab ask no API, and these take long to import.
    from keystoneauth1 import session as keystone_session
    import openstack
    from openstack import connection
    config = openstack.config.OpenStackConfig(
        config_files=[str(state.directory / 'clouds.yaml')],
        # A user's own OS_* would lead to another cloud.
        load_envvars=False).get_one(cloud=cloud, auth=account)
    config.set_session_constructor(functools.partial(
        keystone_session.Session, session=http_session()))
    return connection.Connection(config=config)


def http_session() -> 'requests.Session':
    """Return what sends requests to the services of a lab."""
    import requests
    from requests import adapters
    from urllib3.util import retry
    session = requests.Session()
    # A proxy could not reach loopback on this machine.
    session.trust_env = False
    # A server closes a connection that was idle, perhaps at the moment in
    # which the next request is sent. Only what changes nothing is sent again.
    session.mount('http://', adapters.HTTPAdapter(max_retries=retry.Retry(
        _RETRIES, redirect=False, status=False, allowed_methods=['GET'])))
    return session


def register(state: lab_state.State) -> None:
    """Make the services' accounts and the catalog.

    :param state: the lab's settings; Keystone must answer
    """
    identity = connect(state).identity
    project = identity.create_project(name='service', domain_id='default')
    roles = {role.name: role for role in identity.roles()}
    for name, (kind, path) in _CATALOG.items():
        if name == 'cinder' and not state.volumes:
            continue
        user = identity.create_user(
            name=name, password=state.secret, domain_id='default',
            default_project_id=project.id)
        for role in 'admin', 'service':
            identity.assign_project_role_to_user(
                project, user, roles[role])
        service = identity.create_service(name=name, type=kind)
        for interface in 'public', 'internal':
            identity.create_endpoint(
                service_id=service.id, interface=interface,
                region_id=services.REGION, url=state.url(name) + path)


def has_backend(state: lab_state.State) -> bool:
    """Return whether Cinder's scheduler knows where to make volumes.

    :param state: the lab's settings; Cinder must answer
    """
    storage = connect(state).block_storage
    return any(True for _ in storage.backend_pools())


def furnish(state: lab_state.State) -> None:
    """Make an image and flavors to boot servers with.

    :param state: the lab's settings; Glance and Nova must answer
    """
    cloud = connect(state)
    cloud.image.create_image(
        name=IMAGE, data=b'fake hardware boots nothing', disk_format='raw',
        container_format='bare', visibility='public')
    for name, shape in shapes.FLAVORS.items():
        _make_flavor(cloud, name, shape)


def _make_flavor(cloud: 'connection.Connection', name: str,
                 shape: shapes.Shape) -> None:
    flavor = cloud.compute.create_flavor(
        name=name, ram=shape.memory, vcpus=shape.cpus, disk=shape.disk)
    # The machine as a whole is the resource, not its parts:
    # https://docs.openstack.org/ironic/latest/install/configure-nova-flavors
    cloud.compute.create_flavor_extra_specs(flavor, {
        f'resources:{placement_class(shape.resource_class)}': '1',
        'resources:VCPU': '0',
        'resources:MEMORY_MB': '0',
        'resources:DISK_GB': '0',
        **{f'trait:{trait}': 'required' for trait in shape.traits}})


def placement_class(name: str) -> str:
    """Return the name that a resource class of Ironic has in Placement.

    :param name: its name in Ironic
    """
    return 'CUSTOM_' + name.upper().replace('-', '_')


def aggregate(state: lab_state.State) -> None:
    """Make the zones, with all services in the first, and the aggregate.

    :param state: the lab's settings; Nova must answer, and know the services
    """
    compute = connect(state).compute
    for zone in ZONES:
        compute.create_aggregate(name=zone, availability_zone=zone)
    isolated = compute.create_aggregate(name=ISOLATED)
    compute.set_aggregate_metadata(
        isolated, {f'trait:{shapes.FAST_DISKS}': 'required'})
    settle(state)


def settle(state: lab_state.State) -> bool:
    """Put services that are in no zone into the first, if there are zones.

    :param state: the lab's settings; Nova must answer, and know the services
    :returns: False if Nova refuses a service because it has no node yet
    """
    compute = connect(state).compute
    zones = {each.name: each for each in compute.aggregates()
             if each.availability_zone}
    if not zones:
        return True
    inside = {host for zone in zones.values() for host in zone.hosts or ()}
    for service in compute.services(binary='nova-compute'):
        if service.host not in inside:
            try:
                compute.add_host_to_aggregate(
                    zones[ZONES[0]], service.host)
            except sdk_exceptions.NotFoundException:
                return False
    return True


def leave_aggregates(cloud: 'connection.Connection', host: str) -> None:
    """Take a service out of its aggregates.

    Nova can do so, and can delete its record, only while the service has a
    compute node.

    :param cloud: the lab's cloud
    :param host: the service
    """
    for each in cloud.compute.aggregates():
        if host in (each.hosts or ()):
            cloud.compute.remove_host_from_aggregate(each, host)


def move(state: lab_state.State, host: str, zone: str) -> None:
    """Put a service without servers into another zone.

    :param state: the lab's settings; Nova must answer
    :param host: the service
    :param zone: the zone's name
    """
    compute = connect(state).compute
    for each in compute.aggregates():
        if each.availability_zone and host in (each.hosts or ()):
            compute.remove_host_from_aggregate(each, host)
    compute.add_host_to_aggregate(
        compute.find_aggregate(zone, ignore_missing=False), host)
