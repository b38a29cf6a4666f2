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

"""Binds the ports of the lab's Neutron, to nothing.

Neutron's own drivers want an agent on each host, and a server cannot have a
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
