# SPDX-License-Identifier: Apache-2.0

"""A picture of a plan: bars of each service, before and after."""

from collections.abc import Iterator
from xml.sax import saxutils

from nova_ironic_ring.command import planning

_WIDTH, _BAR, _GAP, _LEFT, _TOP = 720, 16, 14, 150, 56
_COLOURS = {'nodes': '#4a7ebb', 'instances': '#d9883d'}


def svg(plan: planning.Plan) -> str:
    """Draw a plan.

    :param plan: the plan
    :returns: an SVG document
    """
    most = max(max(share.nodes + share.instances,
                   share.nodes_after + share.instances_after)
               for share in plan.shares) or 1
    scale = (_WIDTH - _LEFT - 60) / most
    height = _TOP + len(plan.shares) * (2 * _BAR + _GAP) + 10
    return '\n'.join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" '
        f'height="{height}" font-family="sans-serif" font-size="12">',
        '<title>Nodes and instances of each service, before and after'
        '</title>',
        f'<text x="10" y="20">{planning.moves(plan)}; largest share over '
        f'the mean: {plan.balance:.2f}, then {plan.balance_after:.2f}</text>',
        *_legend(),
        *(element for number, share in enumerate(plan.shares)
          for element in _share(share, _TOP + number * (2 * _BAR + _GAP),
                                scale)),
        '</svg>', ''])


def _legend() -> Iterator[str]:
    for number, (what, colour) in enumerate(_COLOURS.items()):
        x = _LEFT + number * 130
        yield (f'<rect x="{x}" y="32" width="12" height="12" '
               f'fill="{colour}"/>')
        name = 'free nodes' if what == 'nodes' else what
        yield f'<text x="{x + 18}" y="42">{name}</text>'


def _share(share: planning.Share, top: float, scale: float) -> Iterator[str]:
    yield (f'<text x="{_LEFT - 64}" y="{top + _BAR + 4}" text-anchor="end">'
           f'{saxutils.escape(share.host)}</text>')
    for when, y, nodes, instances in (
            ('before', top, share.nodes, share.instances),
            ('after', top + _BAR, share.nodes_after, share.instances_after)):
        yield (f'<text x="{_LEFT - 8}" y="{y + _BAR - 4}" text-anchor="end" '
               f'fill="#666">{when}</text>')
        x = float(_LEFT)
        for count, colour in ((nodes, _COLOURS['nodes']),
                              (instances, _COLOURS['instances'])):
            yield (f'<rect x="{x:.1f}" y="{y + 1}" width="{count * scale:.1f}"'
                   f' height="{_BAR - 2}" fill="{colour}"/>')
            x += count * scale
        yield (f'<text x="{x + 6:.1f}" y="{y + _BAR - 4}">'
               f'{nodes + instances}</text>')
