#!/bin/bash
# SPDX-License-Identifier: Apache-2.0

# Devstack's plugin: several nova-computes with the driver on one machine.
#
# stack.sh, unstack.sh and clean.sh source this with the mode and the phase.
# The first service is devstack's own n-cpu: ironic's plugin restarts that one,
# and stack.sh waits for it. The others read what it reads, and a file of their
# own after that.

# Devstack traces all that it runs; what follows only defines functions.
_XTRACE_NOVA_IRONIC_RING=$(set +o | grep xtrace)
set +o xtrace

NOVA_IRONIC_RING_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# End stack.sh with one sentence if a variable has a bad value, before anything
# is installed.
function check_nova_ironic_ring {
    local groups="" sum=0 entry option
    local name="[[:alnum:]_.-]"
    local blank="[[:space:]]"
    local group="$name*:[1-9][0-9]*"
    local peers="$name*:$name+(,$name+)*"
    # Addresses and paths too, but nothing that bash would expand.
    local value="[a-z_]+=[[:alnum:]_.,:/-]+"

    if [[ $VIRT_DRIVER != ironic ]]; then
        die $LINENO "VIRT_DRIVER is \"$VIRT_DRIVER\":" \
            "nova-ironic-ring needs VIRT_DRIVER=ironic in local.conf."
    fi
    # Nodes are enrolled in the phase in which the services start, and with
    # n-cpu restarted.
    if [[ ",$DEVSTACK_PLUGINS," =~ ,nova-ironic-ring,(.*,)?ironic, ]]; then
        die $LINENO "The plugin ironic comes after nova-ironic-ring:" \
            "enable it before that in local.conf."
    fi
    if [[ ! $NOVA_IRONIC_RING_COMPUTES =~ ^[1-9][0-9]*$ ]]; then
        die $LINENO "NOVA_IRONIC_RING_COMPUTES is" \
            "\"$NOVA_IRONIC_RING_COMPUTES\":" \
            "give the number of nova-computes, at least 1, in local.conf."
    fi
    # Tested as a whole before they are split, so that nothing in them is taken
    # for a pattern of file names.
    if [[ ! $NOVA_IRONIC_RING_GROUPS =~ ^$blank*($group($blank+|$))*$ ]]; then
        die $LINENO "NOVA_IRONIC_RING_GROUPS is" \
            "\"$NOVA_IRONIC_RING_GROUPS\": give groups and numbers of" \
            "services, such as \"rack-a:2 rack-b:1\", in local.conf."
    fi
    for entry in $NOVA_IRONIC_RING_GROUPS; do
        # Ironic does not tell upper case from lower case in them.
        group=${entry%:*}:
        group=${group,,}
        if [[ " $groups" == *" $group "* ]]; then
            die $LINENO "NOVA_IRONIC_RING_GROUPS has the group" \
                "\"${group%:}\" twice: name each once in local.conf."
        fi
        groups+="$group "
        sum=$((sum + ${entry##*:}))
    done
    if [[ $groups ]] && ((sum != NOVA_IRONIC_RING_COMPUTES)); then
        die $LINENO "NOVA_IRONIC_RING_GROUPS has $sum services and" \
            "NOVA_IRONIC_RING_COMPUTES is $NOVA_IRONIC_RING_COMPUTES:" \
            "make them agree in local.conf."
    fi
    if [[ ! $NOVA_IRONIC_RING_PEERS =~ ^$blank*($peers($blank+|$))*$ ]]; then
        die $LINENO "NOVA_IRONIC_RING_PEERS is \"$NOVA_IRONIC_RING_PEERS\":" \
            "give groups and host names of services, such as" \
            "\"rack-a:compute1,compute1-2\", in local.conf."
    fi
    for entry in $NOVA_IRONIC_RING_PEERS; do
        group=${entry%%:*}:
        group=${group,,}
        if [[ " $groups" != *" $group "* ]]; then
            die $LINENO "NOVA_IRONIC_RING_PEERS has the group" \
                "\"${group%:}\", which NOVA_IRONIC_RING_GROUPS has not:" \
                "name it there as well, or not at all, in local.conf."
        fi
    done
    if [[ ! $NOVA_IRONIC_RING_OPTIONS =~ ^$blank*($value($blank+|$))*$ ]]; then
        die $LINENO "NOVA_IRONIC_RING_OPTIONS is" \
            "\"$NOVA_IRONIC_RING_OPTIONS\": give options of [ironic_ring]," \
            "such as \"partitions=64 failover_after=120\", in local.conf."
    fi
    # Nova ignores an option that it does not know.
    for entry in $NOVA_IRONIC_RING_OPTIONS; do
        option=${entry%%=*}
        if ! grep -q "^#$option = " \
            "$NOVA_IRONIC_RING_DIR/etc/nova-ironic-ring.conf.sample"; then
            die $LINENO "NOVA_IRONIC_RING_OPTIONS has \"$option\":" \
                "choose options of [ironic_ring], which" \
                "etc/nova-ironic-ring.conf.sample lists, in local.conf."
        fi
    done
}

# Print the host name of a service.
# nova_ironic_ring_host number
function nova_ironic_ring_host {
    local first
    first=$(iniget "$NOVA_CPU_CONF" DEFAULT host)
    first=${first:-$(hostname)}
    if (($1 == 1)); then
        echo "$first"
    else
        echo "$first-$1"
    fi
}

# Print the conductor group of a service: the first group has the first ones.
# nova_ironic_ring_group number
function nova_ironic_ring_group {
    local entry last=0
    for entry in $NOVA_IRONIC_RING_GROUPS; do
        last=$((last + ${entry##*:}))
        if (($1 <= last)); then
            echo "${entry%:*}"
            return
        fi
    done
}

# Print the services of a conductor group, with commas between them, if it has
# some of Nova's own driver, which do not say what group they are in.
# nova_ironic_ring_peers group
function nova_ironic_ring_peers {
    local peers="" entry group number
    for entry in $NOVA_IRONIC_RING_PEERS; do
        group=${entry%%:*}
        if [[ ${group,,} == "${1,,}" ]]; then
            peers+=,${entry#*:}
        fi
    done
    if [[ ! $peers ]]; then
        return
    fi
    for ((number = NOVA_IRONIC_RING_COMPUTES; number >= 1; number--)); do
        if [[ $(nova_ironic_ring_group "$number") == "$1" ]]; then
            peers=,$(nova_ironic_ring_host "$number")$peers
        fi
    done
    echo "${peers#,}"
}

# Limit a service to its conductor group, if there are groups.
# configure_nova_ironic_ring_group file number
function configure_nova_ironic_ring_group {
    local group
    if [[ $NOVA_IRONIC_RING_GROUPS ]]; then
        group=$(nova_ironic_ring_group "$2")
        iniset "$1" ironic conductor_group "$group"
        iniset "$1" ironic peer_list "$(nova_ironic_ring_peers "$group")"
    fi
}

# Choose the driver, for all services, and limits of what Placement does.
function configure_nova_ironic_ring {
    local entry
    iniset "$NOVA_CONF" DEFAULT compute_driver ironic_ring.IronicRingDriver
    for entry in $NOVA_IRONIC_RING_OPTIONS; do
        iniset "$NOVA_CONF" ironic_ring "${entry%%=*}" "${entry#*=}"
    done
    # Else a start waits without end while Placement is silent.
    iniset "$NOVA_CONF" placement timeout 30
    # With its default, Placement may give one node to two builds.
    if is_service_enabled placement-api; then
        iniset "$PLACEMENT_CONF" placement allocation_conflict_retry_count 1
    fi
}

# Write the file of a service other than the first, and start it.
# start_nova_ironic_ring_compute number
function start_nova_ironic_ring_compute {
    local conf=$NOVA_CONF_DIR/nova-cpu-$1.conf
    # The services can have one state_path: Nova keeps no identity of the host
    # there if its driver is one for Ironic.
    iniset "$conf" DEFAULT host "$(nova_ironic_ring_host "$1")"
    configure_nova_ironic_ring_group "$conf" "$1"
    # What a user says of this one alone, as devstack does for n-cpu.
    merge_config_file "$TOP_DIR/local.conf" post-config "$conf"
    # The unit is given the PATH of now, and rootwrap is looked for there.
    PATH=$NOVA_BIN_DIR:$PATH run_process "n-cpu-$1" \
        "$NOVA_BIN_DIR/nova-compute --config-file $NOVA_CPU_CONF \
--config-file $conf"
}

# Wait until Nova knows all services of this machine.
function wait_for_nova_ironic_ring {
    local known missing number host deadline
    deadline=$((SECONDS + NOVA_READY_TIMEOUT))
    while true; do
        known=$(openstack --os-cloud devstack-admin \
            --os-region-name "$REGION_NAME" compute service list \
            --service nova-compute -c Host -f value) || known=""
        missing=""
        for ((number = 1; number <= NOVA_IRONIC_RING_COMPUTES; number++)); do
            host=$(nova_ironic_ring_host "$number")
            if ! grep -qxF -- "$host" <<< "$known"; then
                missing+=", $host"
            fi
        done
        if [[ ! $missing ]]; then
            return
        fi
        if ((SECONDS >= deadline)); then
            die $LINENO "Nova does not know these nova-computes after" \
                "$NOVA_READY_TIMEOUT seconds: ${missing#, }; see their logs" \
                "with journalctl --unit 'devstack@n-cpu*'."
        fi
        sleep 1
    done
}

# Start the services, in the phase after devstack's own n-cpu.
function start_nova_ironic_ring {
    local number
    # There can be more from an earlier time.
    clean_nova_ironic_ring
    if [[ $NOVA_IRONIC_RING_GROUPS ]]; then
        # Not earlier: ironic's plugin enrolls its nodes into one group, and
        # waits until n-cpu has them all. Devstack's functions write the file
        # of n-cpu anew from that of Nova.
        configure_nova_ironic_ring_group "$NOVA_CONF" 1
        stop_nova_compute
        start_nova_compute
    fi
    for ((number = 2; number <= NOVA_IRONIC_RING_COMPUTES; number++)); do
        start_nova_ironic_ring_compute "$number"
    done
    wait_for_nova_ironic_ring
    # Devstack itself looks for hosts with nodes, and some have none yet.
    if is_service_enabled n-api; then
        "$NOVA_BIN_DIR/nova-manage" --config-file "$NOVA_CONF" \
            cell_v2 discover_hosts --by-service --verbose
    fi
}

# Stop all services but n-cpu, which devstack stops. The files tell which there
# are: the number in local.conf can be another one by now.
function stop_nova_ironic_ring {
    local conf
    for conf in "$NOVA_CONF_DIR"/nova-cpu-[0-9]*.conf; do
        if [[ -e $conf ]]; then
            conf=${conf##*/nova-cpu-}
            stop_process "n-cpu-${conf%.conf}"
        fi
    done
}

# Remove the files. Devstack removes the units, with those of all services.
function clean_nova_ironic_ring {
    rm -f "$NOVA_CONF_DIR"/nova-cpu-[0-9]*.conf
}

$_XTRACE_NOVA_IRONIC_RING

if is_service_enabled n-cpu; then
    case "$1/${2:-}" in
        stack/pre-install)
            check_nova_ironic_ring
            ;;
        stack/install)
            echo_summary "Installing nova-ironic-ring"
            setup_develop "$NOVA_IRONIC_RING_DIR"
            ;;
        stack/post-config)
            echo_summary "Configuring nova-ironic-ring"
            configure_nova_ironic_ring
            ;;
        stack/extra)
            echo_summary "Starting $NOVA_IRONIC_RING_COMPUTES nova-computes"
            start_nova_ironic_ring
            ;;
        unstack/*)
            stop_nova_ironic_ring
            ;;
        clean/*)
            clean_nova_ironic_ring
            ;;
    esac
fi
