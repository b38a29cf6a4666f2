# SPDX-License-Identifier: Apache-2.0

"""Builds: of dead services, of nodes that have gone, and in pools."""
