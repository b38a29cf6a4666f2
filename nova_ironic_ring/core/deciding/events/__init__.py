# SPDX-License-Identifier: Apache-2.0

"""The events of a pass that are worth a line in the log, as values.

Import all of them from here: ``events.NodeTaken``.
"""

from nova_ironic_ring.core.deciding.events.base import *  # noqa: F401,F403
from nova_ironic_ring.core.deciding.events.instances import *  # noqa: F401,F403,E501
from nova_ironic_ring.core.deciding.events.nodes import *  # noqa: F401,F403
from nova_ironic_ring.core.deciding.events.peers import *  # noqa: F401,F403
from nova_ironic_ring.core.deciding.events.pools import *  # noqa: F401,F403
