# SPDX-License-Identifier: Apache-2.0

"""Records of Nova and Ironic, settings and ports, as values."""
