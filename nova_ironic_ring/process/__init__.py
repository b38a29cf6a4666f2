# SPDX-License-Identifier: Apache-2.0

"""This process: its heartbeat and its signals."""
