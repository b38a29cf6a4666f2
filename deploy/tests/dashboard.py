#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0

"""Print what Grafana's own models do not know of a dashboard.

Grafana drops such things without a word. Needs the SDK that Grafana makes of
its schemas, grafana-foundation-sdk.
"""

from collections.abc import Iterator
import json
import pathlib
import sys
from typing import Any


def differences(ours: Any, theirs: Any, place: str = '') -> Iterator[str]:
    """Find what is not there any more, or is something else.

    :param ours: the values of the dashboard
    :param theirs: what is left of them; may have more keys
    :param place: where in the dashboard they are
    """
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key, value in ours.items():
            if key in theirs:
                yield from differences(value, theirs[key], f'{place}.{key}')
            else:
                yield f'{place}.{key}'
    elif isinstance(ours, list) and isinstance(theirs, list) and len(
            ours) == len(theirs):
        for number, (one, other) in enumerate(zip(ours, theirs)):
            yield from differences(one, other, f'{place}[{number}]')
    elif ours != theirs:
        yield place


def read(ours: dict[str, Any]) -> dict[str, Any]:
    """Return a dashboard as Grafana's models have read it.

    :param ours: the dashboard
    """
    # The other function needs no Grafana.
    from grafana_foundation_sdk.cog import encoder
    from grafana_foundation_sdk.cog import plugins
    from grafana_foundation_sdk.models import dashboard
    # The models of the kinds of panels and queries.
    plugins.register_default_plugins()
    return json.loads(encoder.JSONEncoder().encode(
        dashboard.Dashboard.from_json(ours)))


def main(path: str) -> int:
    """Print all differences.

    :param path: the file with the dashboard
    :returns: the exit status, 1 if there are any
    """
    ours = json.loads(pathlib.Path(path).read_text())
    found = list(differences(ours, read(ours)))
    for place in found:
        print(f'{path}: Grafana does not know {place.removeprefix(".")}.')
    return int(bool(found))


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
