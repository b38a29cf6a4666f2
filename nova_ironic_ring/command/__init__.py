# SPDX-License-Identifier: Apache-2.0

"""The command for the controller; see :mod:`nova_ironic_ring.command.app`."""

import os
import warnings

# A library that Nova imports prints this, and scripts read the output.
warnings.filterwarnings('ignore', message='(?s).*Eventlet is deprecated')

# tooz imports eventlet if that is installed. The import of its resolver takes
# longer than everything else, and nothing uses it here.
os.environ.setdefault('EVENTLET_NO_GREENDNS', 'yes')
