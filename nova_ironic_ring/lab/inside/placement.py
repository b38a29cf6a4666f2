# SPDX-License-Identifier: Apache-2.0

"""Placement's WSGI application, whose answers to nova-compute can be lost."""

from placement.wsgi import api

from nova_ironic_ring.lab.inside import lost

application = lost.losing(api.application)
