# SPDX-License-Identifier: Apache-2.0

import sys

from nova_ironic_ring.lab import app

sys.exit(app.main())
