# SPDX-License-Identifier: Apache-2.0

"""The configuration of devstack: local.conf."""

from nova_ironic_ring_tools.devstack import container
from nova_ironic_ring_tools.devstack import network
from nova_ironic_ring_tools.devstack import repositories
from nova_ironic_ring_tools.devstack import settings

#: The file that lists the machines for Ironic.
HARDWARE = container.HOME / 'hardware_info'
#: The file with all that stack.sh prints.
LOG = container.HOME / 'logs/stack.sh.log'
#: The plugin of devstack that fake hardware needs.
FAKE_POWER = container.HOME / 'fake-power'
#: What the names of the images begin with.
IMAGE = 'cirros-made-x86_64'

# This leaves out what fake hardware does not need, and what needs modules of
# the kernel, which a container may not load.
_TEXT = """\
[[local|localrc]]
GIT_BASE={git_base}
ADMIN_PASSWORD={password}
DATABASE_PASSWORD={password}
RABBIT_PASSWORD={password}
SERVICE_PASSWORD={password}
HOST_IP={address}
HOST_IPV6=
IP_VERSION=4
SERVICE_IP_VERSION=4
LOGFILE={log}
LOG_COLOR=False
VERBOSE=False
API_WORKERS=1
# A machine may be slow.
SERVICE_TIMEOUT=300
CIRROS_VERSION=made
ENABLE_KSMTUNED=False

disable_all_services
enable_service key mysql rabbit
enable_service g-api
enable_service q-svc
enable_service placement-api placement-client
enable_service n-api n-cond n-sch n-cpu
# Consoles would run in containers inside of this one.
disable_service ir-novnc ir-sw-sim

VIRT_DRIVER=ironic
enable_plugin ironic {git_base}/openstack/ironic.git {branch}
enable_plugin fake-power {fake_power}
enable_plugin nova-ironic-ring {own} {own_branch}
NOVA_IRONIC_RING_COMPUTES={computes}
NOVA_IRONIC_RING_GROUPS="{groups}"

# Neutron without agents, and without Open vSwitch, which needs modules of the
# kernel: the lab's driver binds each port, although there is no network.
Q_AGENT=openvswitch
Q_ML2_PLUGIN_MECHANISM_DRIVERS=ironic_ring_lab
Q_ML2_PLUGIN_TYPE_DRIVERS=local,flat
Q_ML2_TENANT_NETWORK_TYPE=local
ENABLE_TENANT_TUNNELS=False
ML2_L3_PLUGIN=

IRONIC_IS_HARDWARE=True
IRONIC_DEPLOY_DRIVER=fake-hardware
IRONIC_ENABLED_HARDWARE_TYPES=fake-hardware
IRONIC_HWINFO_FILE={hardware}
"""
_POOL = """
[[post-config|$NOVA_CONF]]
[DEFAULT]
compute_driver = {driver}
"""


def text(cloud: settings.Cloud, password: str, git_base: str, branch: str
         ) -> str:
    """Return the text of local.conf.

    :param cloud: what is to run
    :param password: the password of everything
    :param git_base: the value of devstack's variable GIT_BASE
    :param branch: the branch of all projects
    """
    written = _TEXT.format(
        git_base=git_base, branch=branch, password=password,
        address=network.ADDRESS, log=LOG, own=repositories.own(),
        own_branch=repositories.BRANCH, computes=cloud.computes,
        groups=' '.join(f'{name}:{count}'
                        for name, count in cloud.groups.items()),
        hardware=HARDWARE, fake_power=FAKE_POWER)
    if cloud.driver != 'ring':
        written += _POOL.format(driver=settings.DRIVERS[cloud.driver])
    return written


def hardware(nodes: int) -> str:
    """Return the machines of Ironic, one a line.

    :param nodes: how many
    """
    return ''.join(
        f'127.0.0.1 52:54:00:00:{number >> 8:02x}:{number & 255:02x} '
        'nobody nothing\n' for number in range(nodes))
