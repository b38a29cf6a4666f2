# SPDX-License-Identifier: Apache-2.0

"""A private, real OpenStack on loopback, for trying and testing the driver.

Every service is the real one and a process of its own; only the machines are
not there: Ironic drives its fake hardware. The parts are fixtures, so that a
test can use the whole (:class:`nova_ironic_ring.lab.cloud.Cloud`) or some.
"""
