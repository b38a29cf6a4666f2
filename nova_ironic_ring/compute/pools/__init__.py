# SPDX-License-Identifier: Apache-2.0

"""What a service needs beside the pass to build in pools."""
