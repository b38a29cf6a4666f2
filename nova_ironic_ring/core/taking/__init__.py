# SPDX-License-Identifier: Apache-2.0

"""What a pass writes: instances, nodes and builds change hands here."""
