# SPDX-License-Identifier: Apache-2.0

"""What the scripts of tools need before anything else can run.

Uses nothing but Python's standard library.
"""

from collections.abc import Iterator
import contextlib
import fcntl
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOLS = ROOT / '.tools'

_LEAST_PYTHON = (3, 11)


# Where nothing else decides it, keeps the servers from being started on the
# ports that the whole network sees: the lab has its own.
_INSTALL = """
export DEBIAN_FRONTEND=noninteractive
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT INT TERM
    printf '#!/bin/sh\\nexit 101\\n' >"$policy"
    chmod 755 "$policy"
fi
apt-get update
"$@"
"""


def fail(sentence: str) -> None:
    """End with a sentence for the user."""
    print(sentence, file=sys.stderr)
    sys.exit(2)


def run(*argv: str, env: dict[str, str] | None = None) -> None:
    """Run a command and show its output only if it fails."""
    done = subprocess.run(
        argv, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, env=env)
    if done.returncode:
        fail(f'{shlex.join(argv)} has failed:\n{done.stdout}')


def debian_packages(profile: str = 'test') -> None:
    """Install the packages of bindep.txt that are missing.

    Without the rights to do so, say how to and end.

    :param profile: the profile of bindep.txt
    """
    if not shutil.which('dpkg-query'):
        if profile == 'test' and not (
                shutil.which('mysqld') and shutil.which('rabbitmq-server')):
            fail('mysqld and rabbitmq-server are not on the PATH, and this is '
                 "no Debian: install your distribution's MariaDB and "
                 'RabbitMQ servers.')
        return
    wanted = [
        name for name, profiles in re.findall(
            r'^(\S+) \[platform:dpkg (.*)\]$',
            (ROOT / 'bindep.txt').read_text(), re.MULTILINE)
        if profile in profiles.split()]
    missing = [name for name in wanted if not _installed(name)]
    if not missing:
        return
    install = ['apt-get', 'install', '--yes', '--no-install-recommends',
               *missing]
    if os.geteuid() == 0:
        prefix = []
    elif shutil.which('sudo') and (
            sys.stdin.isatty() or not subprocess.run(
                ['sudo', '--non-interactive', 'true'],
                stderr=subprocess.DEVNULL).returncode):
        prefix = ['sudo']
    else:
        fail('Debian packages are missing and only root may install them: '
             f'apt-get update && {shlex.join(install)}')
    print(f'Installing Debian packages: {", ".join(missing)}', flush=True)
    run(*prefix, 'sh', '-euc', _INSTALL, 'sh', *install)


def _installed(package: str) -> bool:
    status = subprocess.run(
        ['dpkg-query', '--show', '--showformat', '${Status}', package],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    return status == 'install ok installed'


def tools() -> pathlib.Path:
    """Install uv and tox, if need be.

    :returns: the directory of their programs
    """
    if sys.version_info < _LEAST_PYTHON:
        fail('Python %s is too old: Python %d.%d or newer is needed.' % (
            sys.version.split()[0], *_LEAST_PYTHON))
    debian_packages()
    programs = TOOLS / 'venv' / 'bin'
    done = TOOLS / 'venv' / 'done'
    with locked():
        if not done.exists():
            print('Installing uv and tox', flush=True)
            run(sys.executable, '-m', 'venv', '--clear', str(TOOLS / 'venv'))
            run(str(programs / 'pip'), 'install', '--quiet', 'uv', 'tox',
                'tox-uv')
            done.touch()
    return programs


@contextlib.contextmanager
def locked() -> Iterator[None]:
    """Let nobody else install anything into this checkout meanwhile."""
    TOOLS.mkdir(exist_ok=True)
    descriptor = os.open(TOOLS, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
