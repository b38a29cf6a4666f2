# SPDX-License-Identifier: Apache-2.0

"""A drawing of the dashboard."""

from collections.abc import Mapping
import datetime
import json
import math
import pathlib
import re
from typing import Any

import matplotlib
from matplotlib import dates
from matplotlib import figure

from nova_ironic_ring_tools import prometheus

_DASHBOARD = (pathlib.Path(__file__).resolve().parents[3] / 'etc'
              / 'monitoring' / 'nova-ironic-ring.dashboard.json')
# A row of the dashboard's grid, and a column, in inches.
_ROW, _COLUMN = 0.28, 0.5


def draw(source: prometheus.Prometheus, seconds: float,
         path: pathlib.Path) -> None:
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


def _lines(source: prometheus.Prometheus, panel: Mapping[str, Any],
           seconds: float) -> dict[str, list[tuple[float, float]]]:
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
        if at - before[0] > 2 * prometheus.SCRAPE:
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
