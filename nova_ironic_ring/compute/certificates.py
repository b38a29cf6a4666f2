# SPDX-License-Identifier: Apache-2.0

"""The certificates with which the metrics are served."""

from collections.abc import Mapping
import dataclasses
import os
import ssl
import threading

from oslo_log import log as logging

LOG = logging.getLogger(__name__)

_CERT, _KEY, _CLIENT_CA = (
    'metrics_cert_file', 'metrics_key_file', 'metrics_client_ca_file')

#: What a file was when it was read: when it or the right to read it was
#: changed, its size, its place.
_Stamp = tuple[int, int, int]


@dataclasses.dataclass(frozen=True)
class Paths:
    """Where the certificates are, as configured; empty for none."""

    cert: str = ''
    key: str = ''
    client_ca: str = ''

    def check(self) -> None:
        """See that what is given makes sense.

        :raises ValueError: if not; the message says what to do
        """
        for option, path in ((_KEY, self.key), (_CLIENT_CA, self.client_ca)):
            if path and not self.cert:
                raise ValueError(
                    f'[ironic_ring] {option} = "{path}" has no effect '
                    f'without {_CERT}: set that as well, or neither.')

    def given(self) -> Mapping[str, str]:
        """Return the paths that are set, by the names of their options."""
        return {option: path for option, path in (
            (_CERT, self.cert), (_KEY, self.key),
            (_CLIENT_CA, self.client_ca)) if path}


class Certificates:
    """Has a server side of TLS, and makes a new one when a file changes."""

    def __init__(self, paths: Paths) -> None:
        """Read the files.

        :param paths: where they are
        :raises ValueError: if they cannot be used; the message says which and
            why
        """
        self._paths = paths
        self._lock = threading.Lock()
        # Before the files are read: a change in between is seen later.
        self._stamps = self._look()
        self._context = self._read()
        #: What was last told of files that cannot be used; None once they can.
        self._told: tuple[list[_Stamp | None], str] | None = None

    def context(self) -> ssl.SSLContext:
        """Return what a new connection is to be served with.

        Files that have changed are read again. If they cannot be used, as
        between the writing of a certificate and that of its key, the former
        ones stay.
        """
        with self._lock:
            stamps = self._look()
            # What was wrong need not be in the files, such as too many that
            # are open.
            if stamps != self._stamps or self._told:
                try:
                    self._context = self._read()
                except ValueError as error:
                    # A file that stays wrong is told of once.
                    if self._told != (stamps, str(error)):
                        LOG.warning('The metrics keep their former '
                                    'certificates, because the new ones '
                                    'cannot be used (%s): correct the files.',
                                    error)
                    self._told = stamps, str(error)
                else:
                    LOG.info('The metrics have new certificates.')
                    self._stamps, self._told = stamps, None
            return self._context

    def _look(self) -> list[_Stamp | None]:
        """Return the stamp of each file, None for one that is not there."""
        found: list[_Stamp | None] = []
        for path in self._paths.given().values():
            try:
                status = os.stat(path)
            except OSError:
                found.append(None)
            else:
                # Not when its content was changed: a key may be written first,
                # and be given to the account of the service then.
                found.append((
                    status.st_ctime_ns, status.st_size, status.st_ino))
        return found

    def _read(self) -> ssl.SSLContext:
        """Read the files.

        :raises ValueError: as :meth:`__init__`
        """
        # OpenSSL does not say which file it is.
        for option, path in self._paths.given().items():
            try:
                with open(path, 'rb'):
                    pass
            except OSError as error:
                raise ValueError(f'[ironic_ring] {option} = "{path}": '
                                 f'{error.strerror}') from error
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.minimum_version = ssl.TLSVersion.TLSv1_2
        cert, key = self._paths.cert, self._paths.key or self._paths.cert
        try:
            made.load_cert_chain(cert, key, _refuse)
        except (OSError, ValueError) as error:
            raise ValueError(
                f'[ironic_ring] {_CERT} = "{cert}" cannot be used with the '
                f'key in "{key}": {_reason(error)}') from error
        if self._paths.client_ca:
            try:
                made.load_verify_locations(self._paths.client_ca)
            except OSError as error:
                raise ValueError(
                    f'[ironic_ring] {_CLIENT_CA} = "{self._paths.client_ca}" '
                    'has no certificates as PEM') from error
            made.verify_mode = ssl.CERT_REQUIRED
        return made


def _refuse() -> str:
    """Have no password: OpenSSL would ask for it on a terminal."""
    raise ValueError('the key is encrypted')


def _reason(error: Exception) -> str:
    """Say why a certificate cannot be used with a key."""
    if not isinstance(error, ssl.SSLError):
        return str(error)
    if error.reason == 'KEY_VALUES_MISMATCH':
        return 'it is the key of another certificate'
    if not error.reason:
        return 'one of the two is missing, or not in the format PEM'
    words = error.reason.lower().replace('_', ' ')
    return f'OpenSSL says "{words}"'
