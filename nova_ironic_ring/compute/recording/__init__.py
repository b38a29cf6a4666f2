# SPDX-License-Identifier: Apache-2.0

"""Where the events of a pass go: the log, the history, the counters."""
