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

"""Neutron's WSGI application, with a model that it forgets to load.

Without the port forwarding plugin, Neutron 29 answers each listing of ports
with an error: it looks for a relation that only that plugin's model declares.
"""

from neutron.db.models import port_forwarding  # noqa: F401
from neutron.wsgi import api
from sqlalchemy import orm

orm.configure_mappers()

application = api.application
