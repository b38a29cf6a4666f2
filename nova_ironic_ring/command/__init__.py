# SPDX-License-Identifier: Apache-2.0

"""The command for the controller; see :mod:`nova_ironic_ring.command.app`."""

import os
import warnings

# Said by what Nova imports, whichever it uses; a script reads what is printed.
warnings.filterwarnings('ignore', message='(?s).*Eventlet is deprecated')

# tooz imports eventlet where that is installed. Its own resolver takes longer
# to import than all else, and nothing uses it here.
os.environ.setdefault('EVENTLET_NO_GREENDNS', 'yes')
