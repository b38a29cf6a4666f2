# SPDX-License-Identifier: Apache-2.0

"""What happens in a pass and is worth a line in the log, as values.

All are named ``events.NodeTaken``, whatever they are about.
"""

from nova_ironic_ring.core.deciding.events.base import *  # noqa: F401,F403
from nova_ironic_ring.core.deciding.events.instances import *  # noqa: F401,F403,E501
from nova_ironic_ring.core.deciding.events.nodes import *  # noqa: F401,F403
from nova_ironic_ring.core.deciding.events.peers import *  # noqa: F401,F403
from nova_ironic_ring.core.deciding.events.pools import *  # noqa: F401,F403
