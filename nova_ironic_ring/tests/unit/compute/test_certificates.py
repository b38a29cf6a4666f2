# SPDX-License-Identifier: Apache-2.0

import errno
import os
import pathlib
import shutil
import ssl
from unittest import mock

from cryptography.hazmat.primitives.asymmetric import rsa
import fixtures
from oslotest import base

from nova_ironic_ring.compute import certificates
from nova_ironic_ring.tests.fixtures import authority


class CertificatesTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.directory = self.useFixture(fixtures.TempDir()).path
        self.authority = authority.Authority(self.directory, 'ca')
        self.cert, self.key = self.authority.issue('first')
        self.other_cert, self.other_key = self.authority.issue('second')

    def _path(self, name: str, content: bytes = b'') -> str:
        path = pathlib.Path(self.directory, name)
        path.write_bytes(content)
        return str(path)

    def _read(self, *paths: str) -> certificates.Certificates:
        return certificates.Certificates(certificates.Paths(*paths))

    def _replace(self, path: str, new: str) -> None:
        """Renew a file as programs do that renew certificates."""
        shutil.copy(new, f'{path}.new')
        os.replace(f'{path}.new', path)

    def test_what_is_allowed(self):
        context = self._read(self.cert, self.key).context()
        self.assertEqual(ssl.TLSVersion.TLSv1_2, context.minimum_version)
        self.assertEqual(ssl.CERT_NONE, context.verify_mode)
        context = self._read(
            self.cert, self.key, self.authority.path).context()
        self.assertEqual(ssl.CERT_REQUIRED, context.verify_mode)
        self.assertEqual(1, len(context.get_ca_certs()))

    def test_certificate_and_key_in_one_file(self):
        both = self._path('both.pem', b''.join(
            pathlib.Path(path).read_bytes() for path in (self.cert, self.key)))
        self.assertIsNotNone(self._read(both).context())

    def test_options_that_make_no_sense(self):
        for option, values in (
                ('metrics_key_file', ('', 'x')),
                ('metrics_client_ca_file', ('', '', 'x'))):
            error = self.assertRaises(
                ValueError, certificates.Paths(*values).check)
            self.assertEqual(
                f'[ironic_ring] {option} = "x" has no effect without '
                'metrics_cert_file: set that as well, or neither.',
                str(error))

    def test_files_that_cannot_be_read(self):
        for number, option in enumerate((
                'metrics_cert_file', 'metrics_key_file',
                'metrics_client_ca_file')):
            paths = [self.cert, self.key, self.authority.path]
            paths[number] = '/nowhere/x.pem'
            error = self.assertRaises(ValueError, self._read, *paths)
            self.assertEqual(
                f'[ironic_ring] {option} = "/nowhere/x.pem": No such file or '
                'directory', str(error))

    def test_files_that_are_wrong(self):
        empty = self._path('empty.pem')
        absent = 'one of the two is missing, or not in the format PEM'
        for cert, key, reason in (
                (self.cert, self.other_key,
                 'it is the key of another certificate'),
                (self.cert, empty, absent), (empty, self.key, absent),
                (self.cert, '', absent),
                (self.cert, self.authority.encrypt(self.key),
                 'the key is encrypted'),
                (*self.authority.issue('weak', rsa.generate_private_key(
                    65537, 1024)), 'OpenSSL says "ee key too small"')):
            error = self.assertRaises(ValueError, self._read, cert, key)
            self.assertEqual(
                f'[ironic_ring] metrics_cert_file = "{cert}" cannot be used '
                f'with the key in "{key or cert}": {reason}', str(error))
        error = self.assertRaises(
            ValueError, self._read, self.cert, self.key, empty)
        self.assertEqual(
            f'[ironic_ring] metrics_client_ca_file = "{empty}" has no '
            'certificates as PEM', str(error))

    def test_files_that_stay_the_same_are_read_once(self):
        found = self._read(self.cert, self.key, self.authority.path)
        self.assertIs(found.context(), found.context())

    def test_renewed(self):
        found = self._read(self.cert, self.key, self.authority.path)
        before = found.context()
        # First the one and then the other, as anything does.
        self._replace(self.cert, self.other_cert)
        self.assertIs(before, found.context())
        self.assertIs(before, found.context())
        self.assertEqual(1, self.log.output.count(
            'The metrics keep their former certificates, because the new ones '
            'cannot be used ([ironic_ring] metrics_cert_file = '
            f'"{self.cert}" cannot be used with the key in "{self.key}": it '
            'is the key of another certificate): correct the files.'))
        self._replace(self.key, self.other_key)
        after = found.context()
        self.assertIsNot(before, after)
        self.assertIn('The metrics have new certificates.', self.log.output)
        self._replace(
            self.authority.path,
            authority.Authority(self.directory, 'other').path)
        self.assertIsNot(after, found.context())

    def test_away_for_a_while(self):
        found = self._read(self.cert, self.key)
        before = found.context()
        os.rename(self.key, f'{self.key}.old')
        self.assertIs(before, found.context())
        self.assertIn(f'metrics_key_file = "{self.key}": No such file',
                      self.log.output)
        os.rename(f'{self.key}.old', self.key)
        self.assertIsNot(before, found.context())

    def test_right_to_read_it(self):
        found = self._read(self.cert, self.key)
        before, status = found.context(), os.stat(self.key)
        # The clock of a file system has steps.
        while os.stat(self.key).st_ctime_ns == status.st_ctime_ns:
            os.chmod(self.key, 0o600)
        self.assertEqual(status.st_mtime_ns, os.stat(self.key).st_mtime_ns)
        self.assertIsNot(before, found.context())

    def test_what_was_wrong_was_not_in_the_files(self):
        found = self._read(self.cert, self.key)
        before = found.context()
        self._replace(self.cert, self.other_cert)
        self._replace(self.key, self.other_key)
        with mock.patch('builtins.open', side_effect=OSError(
                errno.EMFILE, 'Too many open files')):
            self.assertIs(before, found.context())
        self.assertIn('Too many open files', self.log.output)
        after = found.context()
        self.assertIsNot(before, after)
        self.assertIs(after, found.context())

    def test_each_change_that_is_wrong_is_told_of(self):
        found = self._read(self.cert, self.key)
        for times in 1, 2:
            self._replace(self.cert, self.other_cert)
            for _ in range(2):
                found.context()
                self.assertEqual(
                    times, self.log.output.count('correct the files'))
        self._replace(self.key, self.other_key)
        found.context()
        self.assertEqual(1, self.log.output.count('new certificates.'))
