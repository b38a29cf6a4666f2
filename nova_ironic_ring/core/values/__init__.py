# SPDX-License-Identifier: Apache-2.0

"""What Nova and Ironic say, what operators set, and the ports, as values."""
