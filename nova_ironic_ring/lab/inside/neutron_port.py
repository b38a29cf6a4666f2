# SPDX-License-Identifier: Apache-2.0

"""Binds the ports of the lab's Neutron, although there is no network.

Neutron's own drivers need an agent on each host, and a server cannot have a
port that no driver binds.
"""

from neutron_lib.plugins.ml2 import api


class LabMechanismDriver(api.MechanismDriver):
    """Binds each port, wherever it is."""

    def initialize(self) -> None:
        """Do nothing, as there is nothing to prepare."""

    def bind_port(self, context: api.PortContext) -> None:
        """Bind a port to the first segment of its network.

        :param context: the port
        """
        segment = context.segments_to_bind[0]
        context.set_binding(segment[api.ID], 'other', {})
