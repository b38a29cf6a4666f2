# SPDX-License-Identifier: Apache-2.0

"""A Prometheus that runs for as long as it is used."""

from collections.abc import Mapping, Sequence
import pathlib
import shutil
import subprocess
import time
from typing import Any

import fixtures
import requests
import yaml

#: Seconds between two scrapes.
SCRAPE = 2


def find_program() -> str:
    """Return the path of Prometheus.

    :raises RuntimeError: if there is none
    """
    program = shutil.which('prometheus')
    if program is None:
        raise RuntimeError('There is no Prometheus on this machine: install '
                           'the Debian package "prometheus".')
    return program


class Prometheus(fixtures.Fixture):
    """A Prometheus on loopback."""

    def __init__(self, port: int, jobs: Sequence[Mapping[str, Any]]) -> None:
        """Choose what it watches.

        :param port: the port of Prometheus
        :param jobs: its ``scrape_configs``
        """
        super().__init__()
        self._url = f'http://127.0.0.1:{port}'
        self._port = port
        self._jobs = jobs

    def _setUp(self) -> None:
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        config = directory / 'prometheus.yml'
        config.write_text(yaml.safe_dump({
            'global': {'scrape_interval': f'{SCRAPE}s'},
            'scrape_configs': list(self._jobs)}))
        self._log = directory / 'log'
        with open(self._log, 'w') as log:
            started = subprocess.Popen(
                [find_program(), f'--config.file={config}',
                 f'--storage.tsdb.path={directory / "data"}',
                 f'--web.listen-address=127.0.0.1:{self._port}'],
                stdout=log, stderr=subprocess.STDOUT)
        self.addCleanup(started.wait)
        self.addCleanup(started.terminate)

    def targets(self) -> list[dict[str, Any]]:
        """Return what it watches now, as its API has it.

        :returns: for each target, among others ``health``, which is ``up``
            after a scrape, and ``lastError``; empty if it does not answer yet
        """
        try:
            answer = requests.get(f'{self._url}/api/v1/targets', timeout=60)
        except requests.ConnectionError:
            return []
        return answer.json()['data']['activeTargets'] if answer.ok else []

    def values(self, query: str, seconds: float) -> list[dict[str, Any]]:
        """Return the results of a query.

        :param query: in Prometheus' language
        :param seconds: from how many seconds ago until now
        :returns: the results as Prometheus' API has them: each has its labels
            as ``metric``, and pairs of time and value as ``values``
        :raises RuntimeError: if Prometheus does not answer
        """
        now = time.time()
        params: dict[str, str | float] = {
            'query': query, 'start': now - seconds, 'end': now,
            'step': SCRAPE}
        try:
            answer = requests.get(
                f'{self._url}/api/v1/query_range', timeout=60, params=params)
            answer.raise_for_status()
        except requests.RequestException as error:
            raise RuntimeError(
                f'Prometheus does not answer: {error}. It has said:\n'
                f'{self._log.read_text()[-2000:]}') from error
        return answer.json()['data']['result']
