# SPDX-License-Identifier: Apache-2.0

"""Upgrades nova-computes of a lab one after the other, and back."""
