# SPDX-License-Identifier: Apache-2.0

"""The files that devstack needs in the container before it starts."""

from collections.abc import Mapping
import pathlib

from nova_ironic_ring_tools.devstack import container
from nova_ironic_ring_tools.devstack import local_conf
from nova_ironic_ring_tools.devstack import settings

#: Where devstack is.
DEVSTACK = container.HOME / 'devstack'
#: Where it puts the programs of all services.
PROGRAMS = container.HOME / 'data/venv/bin'

_FAKE_POWER = pathlib.Path(__file__).with_name('fake-power') / 'plugin.sh'
# All virtual environments of devstack see the packages of the system. stack.sh
# clones the checkout; before that, Python skips this file.
_PATH_FILE = 'usr/local/lib/python3.11/dist-packages/nova-ironic-ring-lab.pth'
_PLUGINS = container.HOME / 'nova-ironic-ring/nova_ironic_ring/lab/plugins'
# The script makes the images that ironic's plugin needs: fake hardware boots
# none of them, so they need not be downloaded.
_SCRIPT = """\
set -e
if [ ! -d {devstack} ]; then
    git clone --quiet --branch {branch} {git_base}/openstack/devstack.git \
        {devstack}
fi
# Devstack does not update a clone that it has.
rm -rf {home}/nova-ironic-ring
mkdir -p {devstack}/files/made
cd {devstack}/files/made
truncate --size 1M {image}-blank.img
echo kernel > {image}-vmlinuz
echo ramdisk > {image}-initrd
tar --create --gzip --file ../{image}-uec.tar.gz *
cd ..
rm -r made
qemu-img create -q -f qcow2 {image}-disk.img 1M
# A plugin has to be a repository.
cd {fake_power}
git init --quiet
git add --all
git -c user.name={user} -c user.email={user}@localhost commit --quiet \
    --allow-empty --message "Fake power"
# Ironic's plugin replaces dnsmasq with one that it builds, unless this file
# exists. Nothing here runs dnsmasq.
touch {home}/.patched-dnsmasq
"""


def furnish(box: container.Container, cloud: settings.Cloud, git_base: str,
            sources: settings.Sources) -> None:
    """Write all files that devstack needs, and clone devstack.

    :param box: the container, which runs
    :param cloud: what is to run in it
    :param git_base: the value of devstack's variable GIT_BASE
    :param sources: where everything is fetched from
    :raises DevstackError: if devstack cannot be cloned
    """
    box.write('etc/pip.conf', pip_conf(sources.pip))
    box.write(_PATH_FILE, f'{_PLUGINS}\n')
    box.write(str(local_conf.HARDWARE.relative_to('/')),
              local_conf.hardware(cloud.nodes))
    plugin = local_conf.FAKE_POWER / 'devstack/plugin.sh'
    box.write(str(plugin.relative_to('/')), _FAKE_POWER.read_text())
    # This machine may have no such user, or one with another ID.
    box.root_run('chown', '--recursive', container.USER,
                 str(local_conf.FAKE_POWER))
    box.user_run(_SCRIPT.format(
        branch=sources.branch, git_base=git_base, devstack=DEVSTACK,
        home=container.HOME, image=local_conf.IMAGE,
        fake_power=local_conf.FAKE_POWER, user=container.USER))
    box.write(str((DEVSTACK / 'local.conf').relative_to('/')),
              local_conf.text(cloud, box.password(), git_base,
                              sources.branch))


def pip_conf(variables: Mapping[str, str]) -> str:
    """Return pip's configuration.

    :param variables: the environment variables for pip, with their values
    """
    # A pip with certificates of its own does not know the machine's.
    lines = ['[global]', 'cert = /etc/ssl/certs/ca-certificates.crt']
    for name, value in variables.items():
        option = name.removeprefix('PIP_').lower().replace('_', '-')
        lines.append(f'{option} = {value}')
    return '\n'.join(lines) + '\n'
