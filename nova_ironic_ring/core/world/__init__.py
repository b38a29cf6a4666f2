# SPDX-License-Identifier: Apache-2.0

"""Nova, Ironic and Placement in memory, and a forecast of services in them."""
