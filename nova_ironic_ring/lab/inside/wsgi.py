# SPDX-License-Identifier: Apache-2.0

"""Serves a WSGI application on loopback: ``python -m ... MODULE PORT [...]``.

cheroot's own command line cannot do this: the services' applications read the
arguments of the process that imports them. Here they get only the arguments
after the port.
"""

import importlib
import signal
import sys

from cheroot import wsgi

_THREADS = 6


def main() -> None:
    """Serve until told to end."""
    module, port, *arguments = sys.argv[1:]
    sys.argv[1:] = arguments
    application = importlib.import_module(module).application
    server = wsgi.Server(('127.0.0.1', int(port)), application,
                         numthreads=_THREADS, request_queue_size=64)

    def stop(*_: object) -> None:
        # Otherwise the server waits for idle connections.
        server.shutdown_timeout = 0
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    try:
        server.start()
    except KeyboardInterrupt:
        server.stop()


if __name__ == '__main__':
    main()
