#!/bin/bash
# SPDX-License-Identifier: Apache-2.0

# Runs the plugin as stack.sh, unstack.sh and clean.sh do, with stand-ins for
# the functions of devstack that it calls: devstack.bash MODE [PHASE].
#
# In $ROOT, a directory of the test, is what a machine would have: etc/nova, and
# "calls", where the stand-ins write what they were told. Configuration files
# are in a form of their own, a line "section option = value" each.

ROOT=${ROOT:?}
PLUGIN=$(cd "$(dirname "$0")/.." && pwd)

# What devstack has set when it comes to plugins.
TOP_DIR=$ROOT/devstack
NOVA_BIN_DIR=$ROOT/bin
NOVA_CONF_DIR=$ROOT/etc/nova
NOVA_CONF=$NOVA_CONF_DIR/nova.conf
NOVA_CPU_CONF=$NOVA_CONF_DIR/nova-cpu.conf
PLACEMENT_CONF=$ROOT/etc/placement.conf
NOVA_READY_TIMEOUT=60
REGION_NAME=RegionOne
ENABLED_SERVICES=${ENABLED_SERVICES-n-api,n-cpu,ir-api,ir-cond}
DEVSTACK_PLUGINS=${DEVSTACK_PLUGINS-,ironic,nova-ironic-ring}
VIRT_DRIVER=${VIRT_DRIVER-ironic}

function note {
    echo "$*" >> "$ROOT/calls"
}

function die {
    echo "${*:2}" >&2
    exit 1
}

function hostname {
    echo controller
}

# Time passes only here: what was unset is a variable like others.
unset SECONDS
SECONDS=0

function sleep {
    SECONDS=$((SECONDS + $1))
}

function define_plugin {
    :
}

function plugin_requires {
    :
}

function echo_summary {
    :
}

function is_service_enabled {
    [[ ,$ENABLED_SERVICES, == *,$1,* ]] ||
        [[ $1 == n-cpu-* && ,$ENABLED_SERVICES, == *,n-cpu,* ]]
}

function iniset {
    local kept=""
    if [[ -e $1 ]]; then
        kept=$(grep -v "^$2 $3 = " "$1") || true
    fi
    printf '%s' "${kept:+$kept$'\n'}$2 $3 = $4"$'\n' > "$1"
}

function iniget {
    sed -n "s/^$2 $3 = //p" "$1"
}

# Here local.conf has lines "phase file section option = value".
function merge_config_file {
    local phase file section option value
    while read -r phase file section option _ value; do
        if [[ $phase == "$2" && $file == "${3##*/}" ]]; then
            iniset "$3" "$section" "$option" "$value"
        fi
    done < "$1"
}

function setup_develop {
    note "setup_develop $*"
}

# The unit gets the PATH of its caller.
function run_process {
    note "run_process $*"
    note "PATH of $1 begins with ${PATH%%:*}"
}

function stop_process {
    note "stop_process $*"
}

function stop_nova_compute {
    note "stop_nova_compute"
}

function start_nova_compute {
    note "start_nova_compute"
    cp "$NOVA_CONF" "$NOVA_CPU_CONF"
}

# Nova knows $KNOWN, as soon as it was asked $BUSY times.
function openstack {
    note "openstack"
    if (($(grep -cx openstack "$ROOT/calls") > ${BUSY:-0})); then
        tr ' ' '\n' <<< "${KNOWN-controller controller-2 controller-3}"
    else
        return 1
    fi
}

# shellcheck source=devstack/override-defaults
source "$PLUGIN/override-defaults"
# shellcheck source=devstack/settings
source "$PLUGIN/settings"
if [[ $1 == stack ]]; then
    set -o errexit
fi
# What ends up in the log is of no interest but where a test asks for it.
if [[ ${TRACED:-} ]]; then
    set -o xtrace
fi
# shellcheck source=devstack/plugin.sh
source "$PLUGIN/plugin.sh" "$@"
set +o xtrace
if [[ ${PRINTED:-} ]]; then
    echo "${!PRINTED}"
fi
