# SPDX-License-Identifier: Apache-2.0

"""Neutron's WSGI application, and a model that Neutron does not load.

Without the port forwarding plugin, Neutron 29 answers each listing of ports
with an error: it looks for a relation that only that plugin's model declares.
"""

from neutron.db.models import port_forwarding  # noqa: F401
from neutron.wsgi import api
from sqlalchemy import orm

orm.configure_mappers()

application = api.application
