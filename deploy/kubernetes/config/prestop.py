#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0

"""Drains the nova-compute of a pod that ends for good.

A pod that comes back, after an update or on another machine, keeps its nodes:
they would move twice. So this asks Kubernetes how many pods there are to be.
"""

import json
import os
import pathlib
import ssl
import subprocess
import sys
import urllib.request

ACCOUNT = pathlib.Path('/var/run/secrets/kubernetes.io/serviceaccount')
SERVER = 'https://kubernetes.default.svc'
CONFIGURATION = '/etc/nova-ironic-ring-command/nova.conf'
#: Seconds; with graceful_shutdown_timeout, less than
#: terminationGracePeriodSeconds.
TIMEOUT = 600


def ask(server: str, account: pathlib.Path, namespace: str, name: str
        ) -> dict:
    """Ask Kubernetes for a StatefulSet.

    :param server: the address of Kubernetes' API
    :param account: the folder with the pod's token, and with the certificate
        of the authority
    :param namespace: the namespace that it is in
    :param name: its name
    :returns: what Kubernetes says of it
    :raises OSError: if Kubernetes does not answer, or has none such
    """
    request = urllib.request.Request(
        f'{server}/apis/apps/v1/namespaces/{namespace}/statefulsets/{name}',
        headers={'Authorization':
                 f'Bearer {(account / "token").read_text().strip()}'})
    trusted = ssl.create_default_context(
        cafile=account / 'ca.crt') if server.startswith('https') else None
    with urllib.request.urlopen(
            request, timeout=10, context=trusted) as answer:
        return json.load(answer)


def is_to_go(pod: str, found: dict) -> bool:
    """Say whether a pod ends because there are to be fewer.

    :param pod: its name
    :param found: its StatefulSet, as Kubernetes has it
    """
    if found['metadata'].get('deletionTimestamp'):
        # All of them end, and nobody is left to take the nodes.
        return False
    spec = found['spec']
    first = spec.get('ordinals', {}).get('start', 0)
    return int(pod.rpartition('-')[2]) not in range(
        first, first + spec.get('replicas', 1))


def command(pod: str) -> list[str]:
    """Return what drains a service.

    :param pod: the name of the service, which is that of its pod
    """
    return ['nova-ironic-ring', '--config-file', CONFIGURATION, 'drain', pod,
            *os.environ.get('DRAIN_ARGUMENTS', '--instances').split(),
            '--timeout', str(TIMEOUT), '--yes', '--reason',
            'its pod is removed']


def main() -> int:
    """Drain the service, if that is what there is to do.

    :returns: the exit status of the drain; 0 where there is none
    """
    pod, namespace = os.environ['POD_NAME'], os.environ['POD_NAMESPACE']
    try:
        found = ask(os.environ.get('KUBERNETES_SERVER', SERVER), pathlib.Path(
            os.environ.get('ACCOUNT', ACCOUNT)), namespace,
            pod.rpartition('-')[0])
    except OSError as error:
        print(f'{pod} is not drained, for Kubernetes does not say how many '
              f'pods there are to be: {error}')
        return 0
    if not is_to_go(pod, found):
        return 0
    return subprocess.run(command(pod)).returncode


if __name__ == '__main__':
    sys.exit(main())
