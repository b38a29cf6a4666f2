# SPDX-License-Identifier: Apache-2.0

"""How the command reads and writes: nova.conf, Nova, Ironic and Placement."""
