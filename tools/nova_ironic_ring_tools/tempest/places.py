# SPDX-License-Identifier: Apache-2.0

"""The clouds that Tempest can run on: a lab, and a devstack."""

from collections.abc import Callable, Mapping
import dataclasses
import os
import pathlib

import openstack
from openstack import connection

from nova_ironic_ring.lab import cloud
from nova_ironic_ring.lab.running import process
from nova_ironic_ring.lab.running import services
from nova_ironic_ring.lab import tenant
from nova_ironic_ring_tools.devstack import container
from nova_ironic_ring_tools.devstack import local_conf
from nova_ironic_ring_tools.devstack import network
from nova_ironic_ring_tools.devstack import settings

# What devstack and ironic's plugin make.
_REGION, _FLAVOR = 'RegionOne', 'baremetal'


@dataclasses.dataclass(frozen=True)
class Place:
    """A cloud for Tempest.

    :ivar directory: the directory for what Tempest needs and writes
    :ivar log: its log file
    :ivar identity: the URL of Keystone
    :ivar region: the region
    :ivar password: the password of the administrator
    :ivar computes: how many nova-computes there are
    :ivar image: the name of an image for servers
    :ivar flavor: the name of a flavor for servers
    :ivar link: the connection of the administrator
    :ivar environment: the environment variables for Tempest
    :ivar check: raises LabError if a service has died
    """

    directory: pathlib.Path
    log: pathlib.Path
    identity: str
    region: str
    password: str = dataclasses.field(repr=False)
    computes: int
    image: str
    flavor: str
    link: connection.Connection
    environment: Mapping[str, str] = dataclasses.field(repr=False)
    check: Callable[[], None] = lambda: None


def of_lab(lab: cloud.Lab) -> Place:
    """Return the place of a lab that is up.

    :param lab: the lab
    """
    state = lab.state
    return Place(
        state.directory / 'tempest', state.directory / 'log/tempest.log',
        f'{state.url("keystone")}/v3', services.REGION, state.secret,
        len(state.computes), tenant.IMAGE, tenant.FLAVOR, lab.connect(),
        # With the mark of the lab: who takes the lab down ends Tempest too.
        process.environment(state.directory), lab.check)


def of_devstack(box: container.Container, wanted: settings.Cloud,
                directory: pathlib.Path) -> Place:
    """Return the place of a devstack that is up.

    :param box: its container
    :param wanted: what runs in it
    :param directory: an existing directory for what Tempest writes
    """
    identity = f'http://{network.ADDRESS}/identity/v3'
    link = openstack.connect(
        auth_url=identity, username='admin', password=box.password(),
        project_name='admin', user_domain_id='default',
        project_domain_id='default', region_name=_REGION, load_envvars=False,
        load_yaml_config=False)
    return Place(
        directory / 'tempest', directory / 'tempest.log', identity, _REGION,
        box.password(), wanted.computes, f'{local_conf.IMAGE}-disk', _FLAVOR,
        link, {name: value for name, value in os.environ.items()
               if not name.lower().endswith('_proxy')})
