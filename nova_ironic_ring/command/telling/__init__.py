# SPDX-License-Identifier: Apache-2.0

"""The data read of a deployment, and the answers derived from them."""
