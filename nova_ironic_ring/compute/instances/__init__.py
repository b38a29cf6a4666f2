# SPDX-License-Identifier: Apache-2.0

"""The instances that are another service's, or were a dead one's."""
