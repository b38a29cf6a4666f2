# SPDX-License-Identifier: Apache-2.0

"""A container of Debian 12 with systemd, and a user for devstack."""

import os
import pathlib
import re
import secrets
import shutil
import signal
import subprocess
import time

from nova_ironic_ring_tools.devstack import commands
from nova_ironic_ring_tools.devstack import errors
from nova_ironic_ring_tools.devstack import network

#: The user that runs devstack, and its home.
USER = 'stack'
HOME = pathlib.Path('/opt/stack')

_RELEASE = 'bookworm'
_HOSTNAME = 'devstack'
_PACKAGES = ('ca-certificates', 'dbus', 'git', 'hostname', 'iproute2',
             'iptables', 'kmod', 'locales', 'lsb-release', 'procps', 'python3',
             'qemu-utils', 'sudo', 'systemd', 'systemd-sysv', 'wget')
_CERTIFICATES = pathlib.Path('usr/local/share/ca-certificates')
_SOURCES = """\
deb {mirror} {release} main
deb {mirror} {release}-updates main
deb {mirror}-security {release}-security main
"""
# Devstack restarts the iSCSI initiator, which needs a part of the kernel that
# only the first network of a machine has.
_ISCSI = """\
[Unit]
Description=No iSCSI in a container
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/true
"""
_FILES = {
    'etc/hostname': _HOSTNAME + '\n',
    'etc/hosts': f'127.0.0.1 localhost\n{network.ADDRESS} {_HOSTNAME}\n',
    'etc/locale.gen': 'en_US.UTF-8 UTF-8\n',
    # Without syncs: after a crash of the machine, the container is made anew.
    'etc/dpkg/dpkg.cfg.d/unsafe-io': 'force-unsafe-io\n',
    'etc/apt/apt.conf.d/90languages': 'Acquire::Languages "none";\n',
    'etc/systemd/system/iscsid.service': _ISCSI,
    # The repositories belong to root, and git refuses those of other users.
    'etc/gitconfig': '[safe]\n\tdirectory = *\n',
    f'etc/sudoers.d/{USER}': f'{USER} ALL=(ALL) NOPASSWD: ALL\n',
}
_PREPARE = f"""\
set -e
update-ca-certificates
locale-gen
systemctl mask systemd-networkd systemd-resolved systemd-timesyncd
useradd --shell /bin/bash --home-dir {HOME} --create-home {USER}
chmod 755 {HOME}
apt-get update
# Ironic's plugin installs a package of this name, which only Ubuntu has.
mkdir -p /tmp/shim/DEBIAN
cat > /tmp/shim/DEBIAN/control <<EOF
Package: shim
Version: 99
Architecture: all
Maintainer: nobody <nobody@localhost>
Description: nothing
EOF
dpkg-deb --build /tmp/shim
dpkg --install /tmp/shim.deb
"""
# Devstack changes settings of the network, which here is the container's own.
_WRITABLE = {'SYSTEMD_NSPAWN_API_VFS_WRITABLE': 'network'}
# Seconds.
_BOOT = 120
_HALT = 90
_POLL = 0.5
# Devstack writes to this path if it is a file, and may not. Not an option of
# systemd-nspawn, which may mount /sys over it.
_HIDE = """\
if [ -f /sys/kernel/mm/ksm/run ]; then
    mount --bind /dev/null /sys/kernel/mm/ksm/run
fi
"""


class Container:
    """A container.

    :ivar directory: where it is
    :ivar root: its root directory
    """

    def __init__(self, directory: pathlib.Path) -> None:
        """Describe a container, which need not exist.

        :param directory: a directory that has nothing else
        """
        self.directory = directory
        self.root = directory / 'root'
        self._pid = directory / 'pid'
        self._forwarding = directory / 'ip_forward'
        # The first file that is written, and the last one.
        self._installed = directory / 'debootstrap.log'
        self._made = directory / 'made'

    def make(self, mirror: str) -> None:
        """Install Debian, unless that was done.

        :param mirror: the address of its packages
        :raises DevstackError: if it cannot be installed
        """
        if self._made.exists():
            return
        self._see_that_it_is_ours()
        if self.root.exists():
            shutil.rmtree(self.root)
        self.directory.mkdir(parents=True, exist_ok=True)
        self._installed.touch()
        commands.log(
            self._installed, 'debootstrap',
            '--variant=minbase', f'--include={",".join(_PACKAGES)}', _RELEASE,
            str(self.root), mirror)
        self.write('etc/apt/sources.list', _SOURCES.format(
            mirror=mirror.rstrip('/'), release=_RELEASE))
        for name, text in _FILES.items():
            self.write(name, text)
        # The machine may use a proxy that has certificates of its own.
        certificates = pathlib.Path('/', _CERTIFICATES)
        if certificates.is_dir():
            shutil.copytree(certificates, self.root / _CERTIFICATES,
                            dirs_exist_ok=True)
        self._resolve()
        commands.log(self.directory / 'prepare.log', 'chroot',
                     str(self.root), 'sh', '-c', _PREPARE)
        self._made.touch()

    def _see_that_it_is_ours(self) -> None:
        """Refuse a directory that has something else.

        :raises DevstackError: if it has
        """
        if self.directory.exists() and any(self.directory.iterdir()) and (
                not self._installed.exists()):
            raise errors.DevstackError(
                f'{self.directory} has other files, and no devstack: name an '
                'empty directory, or one that is not there, with '
                '--directory.')

    def password(self) -> str:
        """Return the password of everything in it, always the same one."""
        path = self.directory / 'password'
        if not path.exists():
            path.touch(0o600)
            path.write_text(secrets.token_hex(8))
        return path.read_text()

    def write(self, name: str, text: str) -> None:
        """Write a file, with root as its owner.

        :param name: its path, without the first slash
        :param text: what is in it
        """
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def _resolve(self) -> None:
        """Let the container ask the name servers that this machine asks."""
        path = self.root / 'etc/resolv.conf'
        path.unlink(missing_ok=True)
        path.write_text(pathlib.Path('/etc/resolv.conf').read_text())

    def boot(self) -> None:
        """Start the container, unless it runs.

        :raises DevstackError: if it does not come up
        """
        if self.leader() is not None:
            return
        self._resolve()
        network.up(self._forwarding)
        argv = self._nspawn()
        try:
            with (self.directory / 'console.log').open('w') as console:
                process = subprocess.Popen(
                    argv, stdin=subprocess.DEVNULL, stdout=console,
                    stderr=subprocess.STDOUT, start_new_session=True,
                    env=os.environ | _WRITABLE)
        except OSError as error:
            network.down(self._forwarding)
            raise commands.missing(argv[0], error) from error
        self._pid.write_text(f'{process.pid}\n')
        until = time.monotonic() + _BOOT
        while not self._ready():
            if process.poll() is not None or time.monotonic() > until:
                self.halt()
                raise errors.DevstackError(
                    'The container does not come up: see '
                    f'{self.directory}/console.log.')
            time.sleep(_POLL)
        self.root_run('sh', '-ec', _HIDE)

    def _nspawn(self) -> list[str]:
        """Return the command that runs it."""
        return [
            'systemd-nspawn', '--quiet', '--boot', '--register=no',
            '--keep-unit', f'--directory={self.root}',
            f'--machine={_HOSTNAME}', '--console=read-only',
            f'--network-namespace-path={network.path()}',
            '--capability=CAP_NET_ADMIN', '--resolv-conf=off']

    def _ready(self) -> bool:
        """Return whether the container is ready for commands."""
        return self.leader() is not None and not subprocess.call(
            [*self.enter(), 'systemctl', 'is-active', '--quiet', 'dbus'],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)

    def leader(self) -> int | None:
        """Return the ID of its first process; None if it does not run."""
        try:
            outer = int(self._pid.read_text())
            called = pathlib.Path('/proc', str(outer), 'cmdline').read_bytes()
        except (OSError, ValueError):
            return None
        # Another process can have the ID by now.
        if f'--directory={self.root}'.encode() not in called.split(b'\0'):
            return None
        for status in pathlib.Path('/proc').glob('[0-9]*/stat'):
            try:
                # The name is in brackets, and any character can be in it.
                fields = status.read_text().rpartition(')')[2].split()
            except OSError:
                continue
            if int(fields[1]) == outer:
                return int(status.parent.name)
        return None

    def enter(self) -> list[str]:
        """Return what to put before a command, to run it there as root.

        :raises DevstackError: if it does not run
        """
        leader = self.leader()
        if leader is None:
            raise errors.DevstackError(
                f'No devstack runs in {self.directory}: start one with "up", '
                'or remove what is left of one with "down --only-remove".')
        return ['nsenter', f'--target={leader}', '--mount', '--uts', '--ipc',
                '--net', '--pid', '--cgroup', '--']

    def root_run(self, *argv: str) -> str:
        """Run a command there as root, and return what it prints.

        :param argv: the command
        :raises DevstackError: if it fails
        """
        return commands.run(*self.enter(), *argv)

    def user_run(self, script: str) -> str:
        """Run a script there as the user of devstack.

        :param script: commands of bash
        :returns: what they print
        :raises DevstackError: if it fails
        """
        return commands.run(*self._user(), script, environment=_environment())

    def _user(self) -> list[str]:
        """Return what to put before a script of the user."""
        return [*self.enter(), 'runuser', '--login', USER, '--command']

    def shell(self, script: str | None) -> int:
        """Run a script, or a shell, as the user of devstack in this terminal.

        :param script: commands of bash; None for a shell
        :returns: its exit status
        """
        argv = self._user() + [script] if script else self._user()[:-1]
        return subprocess.call(argv, env=_environment())

    def serve(self, script: str, unit: str, output: pathlib.Path,
              shown: re.Pattern[str] | None = None) -> int:
        """Run a script of the user as a service, until it ends.

        The script runs outside of a login session, so the processes that it
        starts go on after its end. It has the nice value of this process.

        :param script: commands of bash
        :param unit: the name of the service
        :param output: a file for what the script prints
        :param shown: lines that begin with this are printed here as well
        :returns: the exit status of the script
        """
        argv = [
            *self.enter(), 'systemd-run', '--quiet', '--pipe', '--wait',
            '--collect', f'--unit={unit}', f'--uid={USER}', f'--gid={USER}',
            f'--nice={os.nice(0)}', f'--working-directory={HOME}',
            f'--setenv=HOME={HOME}', f'--setenv=USER={USER}',
            '--setenv=TERM=dumb', '--setenv=DEBIAN_FRONTEND=noninteractive',
            'bash', '-c', script]
        with output.open('w') as file, subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, errors='replace',
                env=_environment()) as process:
            assert process.stdout  # as it is piped
            for line in process.stdout:
                file.write(line)
                if shown and shown.match(line):
                    print(line, end='', flush=True)
        return process.returncode

    def halt(self) -> None:
        """Stop the container, if it runs, and remove its network."""
        try:
            outer = int(self._pid.read_text())
        except (OSError, ValueError):
            outer = 0
        if outer and self.leader() is not None:
            os.kill(outer, signal.SIGTERM)
            until = time.monotonic() + _HALT
            while self.leader() is not None and time.monotonic() < until:
                time.sleep(_POLL)
            leader = self.leader()
            if leader is not None:
                os.kill(leader, signal.SIGKILL)
        self._pid.unlink(missing_ok=True)
        network.down(self._forwarding)

    def remove(self) -> None:
        """Stop the container, and remove its directory."""
        self._see_that_it_is_ours()
        self.halt()
        if self.directory.exists():
            # systemd-nspawn removes its lock when it has ended.
            pathlib.Path(f'{self.root.parent}/.#{self.root.name}.lck').unlink(
                missing_ok=True)
            shutil.rmtree(self.directory)


def _environment() -> dict[str, str]:
    """Return an environment without the variables of this machine."""
    return {'PATH': '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:'
                    '/bin',
            'TERM': os.environ.get('TERM', 'dumb'), 'LC_ALL': 'C.UTF-8'}
