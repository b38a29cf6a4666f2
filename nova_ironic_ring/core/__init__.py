# SPDX-License-Identifier: Apache-2.0

"""The rules: values in, values out, without I/O, clock, log or Nova."""
