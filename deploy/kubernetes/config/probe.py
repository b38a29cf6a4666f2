#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0

"""Probes of a nova-compute in a pod, by the metrics that it has there.

"alive": its last heartbeat is not too old. "ready": it has run a pass as well.

Where the metrics are served over TLS, set METRICS_URL to an address that
begins with https, and where clients need a certificate, METRICS_CERT_FILE to a
file that has one with its key.
"""

import os
import ssl
import sys
import urllib.request

URL = 'http://127.0.0.1:19108/metrics'
#: Seconds. With the two failures that the liveness probe allows, and with
#: [DEFAULT] rpc_response_timeout, this has to stay below failover_after.
LIMIT = 90.0
PREFIX = 'nova_ironic_ring_'


def read(url: str) -> dict[str, float]:
    """Read the metrics without a label.

    :param url: where they are
    :returns: the values by name, without the prefix
    :raises OSError: if they cannot be read
    """
    context = None
    if url.startswith('https:'):
        # The service is in the same pod, and its certificate for other names.
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        if client := os.environ.get('METRICS_CERT_FILE'):
            context.load_cert_chain(client)
    with urllib.request.urlopen(url, timeout=4, context=context) as answer:
        lines = answer.read().decode().splitlines()
    pairs = (line.split() for line in lines if line.startswith(PREFIX))
    return {name.removeprefix(PREFIX): float(value)
            for name, value in pairs if '{' not in name}


def judge(metrics: dict[str, float], question: str, limit: float
          ) -> str | None:
    """Say what is wrong.

    :param metrics: as :func:`read` has them
    :param question: ``alive`` or ``ready``
    :param limit: seconds that the last heartbeat may be old
    :returns: None if nothing is
    """
    passes = metrics['passes_total']
    # There is none before the first heartbeat.
    age = metrics.get('heartbeat_age_seconds')
    if age is None:
        return 'it has not started yet: no heartbeat was written'
    if age > limit:
        return f'the last heartbeat was written {age:.0f} s ago'
    if question == 'ready' and not passes:
        return 'it has run no pass yet'
    return None


def main(question: str) -> int:
    """Ask, and print what is wrong.

    :param question: ``alive`` or ``ready``
    :returns: the exit status, 1 if something is wrong
    """
    try:
        wrong = judge(read(os.environ.get('METRICS_URL', URL)), question,
                      float(os.environ.get('HEARTBEAT_LIMIT', LIMIT)))
    except (OSError, KeyError, ValueError) as error:
        wrong = f'its metrics cannot be read: {error!r}'
    if wrong is not None:
        print(f'nova-compute: {wrong}')
    return int(wrong is not None)


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
