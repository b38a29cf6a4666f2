# SPDX-License-Identifier: Apache-2.0

"""Nova's records, read and written through conductor, or as tables."""
