# SPDX-License-Identifier: Apache-2.0

"""The tests of what is in the directory ``tools``.

Only tox puts that directory on Python's path. Without tox it is put there
here, before a test module imports a program.
"""

import pathlib
import sys

#: Where the programs are.
TOOLS = pathlib.Path(__file__).resolve().parents[4] / 'tools'

if str(TOOLS) not in sys.path:
    sys.path.append(str(TOOLS))
