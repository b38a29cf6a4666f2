# SPDX-License-Identifier: Apache-2.0

"""A Prometheus that watches a lab, and a drawing of the dashboard."""

from collections.abc import Mapping
import datetime
import json
import math
import pathlib
import re
import shutil
import subprocess
import time
from typing import Any

import fixtures
import matplotlib
from matplotlib import dates
from matplotlib import figure
import requests
import yaml

_DASHBOARD = (pathlib.Path(__file__).resolve().parents[3] / 'etc'
              / 'monitoring' / 'nova-ironic-ring.dashboard.json')
_SCRAPE = 2
# A row of the dashboard's grid, and a column, in inches.
_ROW, _COLUMN = 0.28, 0.5


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

    def __init__(self, port: int, targets: Mapping[str, int]) -> None:
        """Choose what it watches.

        :param port: the port of Prometheus
        :param targets: the port of each service's metrics, by its host
        """
        super().__init__()
        self._url = f'http://127.0.0.1:{port}'
        self._port = port
        self._targets = targets

    def _setUp(self) -> None:
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        config = directory / 'prometheus.yml'
        config.write_text(yaml.safe_dump({
            'global': {'scrape_interval': f'{_SCRAPE}s'},
            'scrape_configs': [{
                'job_name': 'nova-ironic-ring', 'static_configs': [
                    {'targets': [f'127.0.0.1:{port}'],
                     # The name that it would have on a machine of its own.
                     'labels': {'instance': host}}
                    for host, port in self._targets.items()]}]}))
        self._log = directory / 'log'
        with open(self._log, 'w') as log:
            started = subprocess.Popen(
                [find_program(), f'--config.file={config}',
                 f'--storage.tsdb.path={directory / "data"}',
                 f'--web.listen-address=127.0.0.1:{self._port}'],
                stdout=log, stderr=subprocess.STDOUT)
        self.addCleanup(started.wait)
        self.addCleanup(started.terminate)

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
            'step': _SCRAPE}
        try:
            answer = requests.get(
                f'{self._url}/api/v1/query_range', timeout=60, params=params)
            answer.raise_for_status()
        except requests.RequestException as error:
            raise RuntimeError(
                f'Prometheus does not answer: {error}. It has said:\n'
                f'{self._log.read_text()[-2000:]}') from error
        return answer.json()['data']['result']


def draw(source: Prometheus, seconds: float, path: pathlib.Path) -> None:
    """Draw all panels of the dashboard, in their places.

    :param source: the Prometheus that has watched the services
    :param seconds: from how many seconds ago until now
    :param path: the file to write, in SVG
    """
    panels = json.loads(_DASHBOARD.read_text())['panels']
    rows = max(each['gridPos']['y'] + each['gridPos']['h'] for each in panels)
    # So that two drawings differ only in their data.
    matplotlib.rcParams.update({
        'svg.hashsalt': 'nova-ironic-ring', 'font.size': 8,
        'svg.fonttype': 'none'})
    drawn = figure.Figure(figsize=(24 * _COLUMN, rows * _ROW))
    for panel in panels:
        place = panel['gridPos']
        # The times and the legend are below a graph.
        below = 0.2 if panel['type'] == 'stat' else 2.2
        bottom = place['y'] + place['h'] - below
        axes = drawn.add_axes((
            (place['x'] + 0.9) / 24, 1 - bottom / rows,
            (place['w'] - 1.4) / 24, (place['h'] - below - 1.2) / rows))
        axes.set_title(panel['title'], loc='left', fontweight='bold')
        lines = _lines(source, panel, seconds)
        if panel['type'] == 'stat':
            _stat(axes, lines)
        else:
            _graph(axes, lines)
    drawn.savefig(path, metadata={'Date': None})


def _lines(source: Prometheus, panel: Mapping[str, Any], seconds: float
           ) -> dict[str, list[tuple[float, float]]]:
    """Return the lines of a panel by their legends: times and values."""
    found = {}
    for target in panel['targets']:
        query = target['expr'].replace('$instance', '.*')
        for each in source.values(query, seconds):
            legend = re.sub(
                r'{{(\w+)}}', lambda name: each['metric'].get(name[1], ''),
                target['legendFormat'])
            found[legend] = _with_gaps(
                [(float(at), float(value)) for at, value in each['values']])
    return found


def _with_gaps(pairs: list[tuple[float, float]]
               ) -> list[tuple[float, float]]:
    """Break a line where there are no values, as of a dead service."""
    broken = pairs[:1]
    for before, (at, value) in zip(pairs, pairs[1:]):
        if at - before[0] > 2 * _SCRAPE:
            broken.append((at, math.nan))
        broken.append((at, value))
    return broken


def _stat(axes: Any, lines: Mapping[str, list[tuple[float, float]]]) -> None:
    axes.set_axis_off()
    shown = '\n'.join(
        f'{pairs[-1][1]:g}' + (f' {legend}' if len(lines) > 1 else '')
        for legend, pairs in lines.items()) or 'No data'
    axes.text(0.5, 0.4, shown, ha='center', va='center',
              fontsize=8 if len(lines) > 1 or not lines else 18,
              transform=axes.transAxes)


def _graph(axes: Any, lines: Mapping[str, list[tuple[float, float]]]) -> None:
    if not lines:
        # For example, there are no offers with pools.
        axes.set_xticks([])
        axes.set_yticks([])
        axes.text(0.5, 0.5, 'No data', ha='center', va='center',
                  transform=axes.transAxes)
        return
    for legend, pairs in sorted(lines.items()):
        axes.plot([datetime.datetime.fromtimestamp(at, datetime.timezone.utc)
                   for at, _ in pairs], [value for _, value in pairs],
                  label=legend, linewidth=1.2)
    axes.grid(alpha=0.3)
    axes.spines[['top', 'right']].set_visible(False)
    axes.xaxis.set_major_locator(dates.MinuteLocator())
    axes.xaxis.set_major_formatter(dates.DateFormatter('%H:%M'))
    axes.set_ylim(bottom=0)
    axes.legend(loc='upper left', bbox_to_anchor=(0, -0.14), fontsize=6,
                ncols=4, frameon=False, borderaxespad=0)
