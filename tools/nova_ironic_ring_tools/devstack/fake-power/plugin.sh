#!/bin/bash
# SPDX-License-Identifier: Apache-2.0

# Devstack's plugin for fake hardware: it has no power state until somebody
# gives it one, and Nova uses no node without. Ironic's plugin does not do that,
# and waits in vain until Nova uses its nodes.

# Ironic's plugin has defined its functions by then.
if [[ $1/${2:-} == stack/post-config ]]; then
    eval "provide_powered_$(declare -f provide_nodes)"

    function provide_nodes {
        local node
        for node in "$@"; do
            $IRONIC_CMD node power off "$node"
        done
        provide_powered_provide_nodes "$@"
    }
fi
