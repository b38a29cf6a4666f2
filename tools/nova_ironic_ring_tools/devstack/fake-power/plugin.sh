#!/bin/bash
# SPDX-License-Identifier: Apache-2.0

# Devstack's plugin for fake hardware: a node has no power state until somebody
# sets one, and Nova uses no node without a power state. Ironic's plugin sets
# none, and waits in vain until Nova uses its nodes. They are on: Ironic tells
# Nova of each change of power, and Nova notes it as an action of the server.

# In this phase, the functions of Ironic's plugin are defined already.
if [[ $1/${2:-} == stack/post-config ]]; then
    eval "provide_powered_$(declare -f provide_nodes)"

    function provide_nodes {
        local node
        for node in "$@"; do
            $IRONIC_CMD node power on "$node"
        done
        provide_powered_provide_nodes "$@"
    }
fi
