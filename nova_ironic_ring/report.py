# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The section of Nova's Guru Meditation Report about the ring.

See https://docs.openstack.org/nova/latest/reference/gmr.html.
"""

from collections.abc import Mapping
import dataclasses
import datetime

from oslo_reports.models import with_default_views

from nova_ironic_ring import keeper
from nova_ironic_ring import ownership
from nova_ironic_ring import settings


class Report(with_default_views.ModelWithDefaultViews):
    """The section."""


@dataclasses.dataclass(frozen=True)
class Pass:
    """When something was decided.

    :ivar at: when that was over, with time zone
    :ivar seconds: how long it took
    """

    at: datetime.datetime
    seconds: float


def make(kept: keeper.Keeper, current: settings.Settings | None,
         counts: Mapping[ownership.Decision, int], last: Pass | None,
         vanished: bool) -> Report:
    """Say how a service is.

    :param kept: what decides for it
    :param current: its settings; None before it has read any
    :param counts: how often each decision was made in the last pass
    :param last: the last pass; None before the first
    :param vanished: whether too many of its nodes have vanished to believe it
    """
    return Report(data={
        'settings': dataclasses.asdict(current) if current else {},
        'services': {host: state.value for host, state
                     in sorted(kept.picture.states.items())},
        'ring': {'members': ', '.join(sorted(kept.ring.members)) or 'none',
                 'partitions': kept.ring.partitions},
        'last pass': {
            'ended at': f'{last.at:%Y-%m-%d %H:%M:%S} UTC',
            'took': f'{last.seconds:.2f} s',
            'decisions': {decision.name: count
                          for decision, count in counts.items()},
        } if last else {},
        'guards': {
            'trust': kept.trust.value,
            'vanished nodes': 'closed' if vanished else 'open',
            'quarrels with': ', '.join(kept.quarrels()) or 'nobody',
        },
    })
