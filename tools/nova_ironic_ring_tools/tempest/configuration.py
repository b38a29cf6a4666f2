# SPDX-License-Identifier: Apache-2.0

"""Tempest's configuration for a cloud."""

import dataclasses

from openstack import utils

from nova_ironic_ring.lab.running import services
from nova_ironic_ring_tools.tempest import places

_NETWORK = 'tempest'
_SECOND = 'tempest'
# Seconds that a server may take: more than Tempest allows by itself, for a
# machine that has other things to do.
_TIMEOUT = 900
# Far more than any version of Nova's API.
_ANY_VERSION = '2.9999'

# Which features that Tempest can test Nova's ironic driver has; the others are
# for virtual machines.
_FEATURES = {
    'rescue': True, 'interface_attach': True, 'config_drive': True,
    'hostname_fqdn_sanitization': True,
    'change_password': False, 'cold_migration': False,
    'console_output': False, 'live_migration': False, 'pause': False,
    'personality': False, 'resize': False, 'shelve': False,
    'snapshot': False, 'suspend': False}


@dataclasses.dataclass(frozen=True)
class Ground:
    """What a cloud has for Tempest's servers.

    :ivar image: the ID of their image
    :ivar other_image: the ID of another one
    :ivar flavor: the ID of their flavor
    :ivar other_flavor: the ID of another one, for the same nodes
    :ivar newest: the newest version of Nova's API, such as ``2.103``: Tempest
        may know newer ones
    :ivar network: the name of the network that they all are in
    """

    image: str
    other_image: str
    flavor: str
    other_flavor: str
    newest: str
    network: str = _NETWORK


def prepare(place: places.Place) -> Ground:
    """Make what Tempest's servers need, and the cloud does not have.

    :param place: a cloud that is up, on which Tempest may have run before
    """
    link = place.link
    if link.network.find_network(_NETWORK) is None:
        # All projects share it: there are no routers, with which Tempest would
        # make a network for each project.
        network = link.network.create_network(name=_NETWORK, is_shared=True)
        link.network.create_subnet(
            network_id=network.id, ip_version=4, cidr='198.51.100.0/24')
    image = link.image.find_image(place.image, ignore_missing=False)
    other = link.image.find_image(_SECOND) or link.image.create_image(
        name=_SECOND, data=b'nor does this', disk_format='raw',
        container_format='bare', visibility='public')
    flavor = link.compute.find_flavor(
        place.flavor, ignore_missing=False, get_extra_specs=True)
    second = link.compute.find_flavor(_SECOND)
    if second is None:
        second = link.compute.create_flavor(
            name=_SECOND, ram=flavor.ram, vcpus=flavor.vcpus, disk=flavor.disk)
        link.compute.create_flavor_extra_specs(second, flavor.extra_specs)
    return Ground(
        image.id, other.id, flavor.id, second.id,
        utils.maximum_supported_microversion(link.compute, _ANY_VERSION))


def sections(place: places.Place, ground: Ground) -> services.Sections:
    """Return the options of tempest.conf by section.

    :param place: the cloud
    :param ground: what it has for Tempest's servers
    """
    return {
        'DEFAULT': {'log_file': place.log, 'debug': False},
        'oslo_concurrency': {'lock_path': place.directory / 'lock'},
        'auth': {
            'use_dynamic_credentials': True,
            'create_isolated_networks': False,
            'admin_username': 'admin', 'admin_password': place.password,
            'admin_project_name': 'admin', 'admin_domain_name': 'Default'},
        'identity': {
            'uri_v3': place.identity, 'auth_version': 'v3',
            'region': place.region},
        'service_available': {
            'cinder': False, 'swift': False, 'horizon': False,
            'glance': True, 'neutron': True, 'nova': True, 'ironic': True},
        'compute': {
            'image_ref': ground.image, 'image_ref_alt': ground.other_image,
            'flavor_ref': ground.flavor,
            'flavor_ref_alt': ground.other_flavor,
            'fixed_network_name': ground.network,
            'min_compute_nodes': place.computes,
            'min_microversion': '2.1', 'max_microversion': ground.newest,
            'build_timeout': _TIMEOUT},
        'compute-feature-enabled': _FEATURES,
        'network': {'shared_physical_network': True},
        'network-feature-enabled': {'floating_ips': False},
        # Fake hardware boots nothing that could be logged in to.
        'validation': {'run_validation': False},
    }
