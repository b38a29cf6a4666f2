#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0

# What the plugin does in each phase, with devstack's functions stubbed; see
# devstack.bash, which runs it.

# Each test is a process of its own, so that what it exports ends with it.
# shellcheck disable=SC2030,SC2031

bats_require_minimum_version 1.5.0

setup() {
    export ROOT=$BATS_TEST_TMPDIR
    nova=$ROOT/etc/nova
    mkdir -p "$nova" "$ROOT/bin" "$ROOT/devstack"
    touch "$ROOT/calls" "$ROOT/devstack/local.conf"
    # What ironic's plugin and devstack have left there.
    echo "DEFAULT compute_driver = ironic.IronicDriver" > "$nova/nova.conf"
    cp "$nova/nova.conf" "$nova/nova-cpu.conf"
    # shellcheck disable=SC2016
    printf '#!/bin/sh\necho "nova-manage $*" >> "$ROOT/calls"\n' \
        > "$ROOT/bin/nova-manage"
    chmod 755 "$ROOT/bin/nova-manage"
}

# Run a phase, which has to succeed.
phase() {
    run -0 bash "$BATS_TEST_DIRNAME/devstack.bash" "$@"
}

# All phases of stack.sh.
stack() {
    local name
    for name in pre-install install post-config extra test-config; do
        phase stack "$name"
        [ -z "$output" ]
    done
}

# Have the arguments, one for a line, be the whole content of a file.
has() {
    diff -u <(printf '%s\n' "${@:2}") "$1"
}

# The plugin ends stack.sh with this and nothing else, before it does anything.
refuses() {
    run -1 bash "$BATS_TEST_DIRNAME/devstack.bash" stack pre-install
    diff -u <(echo "$1") <(echo "$output")
    [ ! -s "$ROOT/calls" ]
}

@test "settings have defaults" {
    local name
    for name in COMPUTES=3 GROUPS= PEERS= OPTIONS=; do
        PRINTED=NOVA_IRONIC_RING_${name%%=*} phase stack pre-install
        [ "$output" = "${name#*=}" ]
    done
    PRINTED=NOVA_SERVICE_REPORT_INTERVAL phase stack pre-install
    [ "$output" = 10 ]
}

@test "settings are the user's" {
    export NOVA_IRONIC_RING_COMPUTES=4 NOVA_IRONIC_RING_GROUPS="a:3 b:1"
    export NOVA_IRONIC_RING_PEERS=a:other NOVA_IRONIC_RING_OPTIONS=partitions=1
    export NOVA_SERVICE_REPORT_INTERVAL=120
    local name
    for name in NOVA_IRONIC_RING_COMPUTES NOVA_IRONIC_RING_GROUPS \
        NOVA_IRONIC_RING_PEERS NOVA_IRONIC_RING_OPTIONS \
        NOVA_SERVICE_REPORT_INTERVAL; do
        PRINTED=$name phase stack pre-install
        [ "$output" = "${!name}" ]
    done
}

@test "pre-install does nothing" {
    phase stack pre-install
    [ -z "$output" ]
    [ ! -s "$ROOT/calls" ]
}

@test "install installs this checkout" {
    phase stack install
    has "$ROOT/calls" "setup_develop $(cd "$BATS_TEST_DIRNAME/../.." && pwd)"
}

@test "post-config chooses the driver" {
    phase stack post-config
    has "$nova/nova.conf" \
        "DEFAULT compute_driver = ironic_ring.IronicRingDriver" \
        "placement timeout = 30"
    [ ! -s "$ROOT/calls" ]
}

@test "post-config sets the options" {
    NOVA_IRONIC_RING_OPTIONS=" partitions=64
        instance_mobility=follow metrics_listen=127.0.0.1:19108 \
        metrics_key_file=/etc/nova/key.pem" phase stack post-config
    has "$nova/nova.conf" \
        "DEFAULT compute_driver = ironic_ring.IronicRingDriver" \
        "ironic_ring partitions = 64" \
        "ironic_ring instance_mobility = follow" \
        "ironic_ring metrics_listen = 127.0.0.1:19108" \
        "ironic_ring metrics_key_file = /etc/nova/key.pem" \
        "placement timeout = 30"
}

@test "post-config has Placement try once" {
    phase stack post-config
    [ ! -e "$ROOT/etc/placement.conf" ]
    ENABLED_SERVICES=n-cpu,placement-api phase stack post-config
    has "$ROOT/etc/placement.conf" \
        "placement allocation_conflict_retry_count = 1"
}

@test "extra starts the services, and makes them known" {
    phase stack extra
    has "$ROOT/calls" \
        "run_process n-cpu-2 $ROOT/bin/nova-compute --config-file \
$nova/nova-cpu.conf --config-file $nova/nova-cpu-2.conf" \
        "PATH of n-cpu-2 begins with $ROOT/bin" \
        "run_process n-cpu-3 $ROOT/bin/nova-compute --config-file \
$nova/nova-cpu.conf --config-file $nova/nova-cpu-3.conf" \
        "PATH of n-cpu-3 begins with $ROOT/bin" \
        "openstack" \
        "nova-manage --config-file $nova/nova.conf cell_v2 discover_hosts \
--by-service --verbose"
    has "$nova/nova-cpu-2.conf" "DEFAULT host = controller-2"
    has "$nova/nova-cpu-3.conf" "DEFAULT host = controller-3"
    has <(ls "$nova") nova-cpu-2.conf nova-cpu-3.conf nova-cpu.conf nova.conf
}

@test "as many services as wanted" {
    local hosts number
    hosts=$(seq --format controller-%g 12)
    for number in 1 2 12; do
        rm "$ROOT/calls"
        NOVA_IRONIC_RING_COMPUTES=$number KNOWN="controller $hosts" \
            phase stack extra
        [ "$(grep -c ^run_process "$ROOT/calls")" = $((number - 1)) ]
        [ "$(cat "$nova"/nova-cpu-*.conf | sort -u | wc -l)" \
            = $((number - 1)) ]
    done
}

@test "all phases in a row" {
    NOVA_IRONIC_RING_GROUPS=rack-a:3 stack
    has <(cut -d ' ' -f 1,2 "$ROOT/calls" | grep -v ^PATH) \
        "setup_develop $(cd "$BATS_TEST_DIRNAME/../.." && pwd)" \
        "stop_nova_compute" \
        "start_nova_compute" \
        "run_process n-cpu-2" \
        "run_process n-cpu-3" \
        "openstack" \
        "nova-manage --config-file"
}

@test "the first service keeps the name that it has" {
    echo "DEFAULT host = elsewhere" >> "$nova/nova-cpu.conf"
    KNOWN="elsewhere elsewhere-2 elsewhere-3" phase stack extra
    has "$nova/nova-cpu-2.conf" "DEFAULT host = elsewhere-2"
    has "$nova/nova-cpu-3.conf" "DEFAULT host = elsewhere-3"
}

@test "groups have their services" {
    export NOVA_IRONIC_RING_COMPUTES=4
    export NOVA_IRONIC_RING_GROUPS="rack-a:2 rack-b:1
        rack.C_:1"
    export KNOWN="controller controller-2 controller-3 controller-4"
    stack
    # That of the first is the one that all read.
    has "$nova/nova-cpu.conf" \
        "DEFAULT compute_driver = ironic_ring.IronicRingDriver" \
        "placement timeout = 30" \
        "ironic conductor_group = rack-a" \
        "ironic peer_list = "
    has "$nova/nova-cpu-2.conf" \
        "DEFAULT host = controller-2" \
        "ironic conductor_group = rack-a" \
        "ironic peer_list = "
    has "$nova/nova-cpu-3.conf" \
        "DEFAULT host = controller-3" \
        "ironic conductor_group = rack-b" \
        "ironic peer_list = "
    has "$nova/nova-cpu-4.conf" \
        "DEFAULT host = controller-4" \
        "ironic conductor_group = rack.C_" \
        "ironic peer_list = "
}

@test "the default group has no name" {
    NOVA_IRONIC_RING_GROUPS="rack-a:1 :2" stack
    has "$nova/nova-cpu-2.conf" \
        "DEFAULT host = controller-2" \
        "ironic conductor_group = " \
        "ironic peer_list = "
}

@test "n-cpu has no group until its nodes are enrolled" {
    NOVA_IRONIC_RING_GROUPS=rack-a:3 phase stack post-config
    run -1 grep group "$nova/nova.conf"
}

@test "n-cpu is not restarted without groups" {
    stack
    run -1 grep nova_compute "$ROOT/calls"
    run -1 grep -r group "$nova"
}

@test "groups have services of another driver on other machines" {
    NOVA_IRONIC_RING_COMPUTES=4 \
        KNOWN="controller controller-2 controller-3 controller-4" \
        NOVA_IRONIC_RING_GROUPS="Rack-a:2 :1 rack-b:1" \
        NOVA_IRONIC_RING_PEERS="rack-a:compute1,compute1-2 :compute1-3" stack
    has <(grep -h peer_list "$nova"/nova{,-cpu-{2,3,4}}.conf) \
        "ironic peer_list = controller,controller-2,compute1,compute1-2" \
        "ironic peer_list = controller,controller-2,compute1,compute1-2" \
        "ironic peer_list = controller-3,compute1-3" \
        "ironic peer_list = "
}

@test "local.conf has the last word on a service" {
    printf '%s\n' \
        "post-config nova-cpu-3.conf DEFAULT compute_driver = fake" \
        "post-config nova-cpu-4.conf DEFAULT compute_driver = none" \
        "extra nova-cpu-2.conf DEFAULT compute_driver = none" \
        > "$ROOT/devstack/local.conf"
    phase stack extra
    has "$nova/nova-cpu-2.conf" "DEFAULT host = controller-2"
    has "$nova/nova-cpu-3.conf" \
        "DEFAULT host = controller-3" "DEFAULT compute_driver = fake"
}

@test "nothing is left of another time" {
    echo "ironic conductor_group = old" \
        | tee "$nova/nova-cpu-2.conf" > "$nova/nova-cpu-10.conf"
    NOVA_IRONIC_RING_COMPUTES=2 phase stack extra
    has <(ls "$nova") nova-cpu-2.conf nova-cpu.conf nova.conf
    has "$nova/nova-cpu-2.conf" "DEFAULT host = controller-2"
}

@test "services are waited for" {
    BUSY=7 phase stack extra
    [ "$(grep -cx openstack "$ROOT/calls")" = 8 ]
    [[ $(tail -n 1 "$ROOT/calls") == nova-manage* ]]
}

@test "services that do not come end stack.sh" {
    # The name of one is the beginning of another's.
    KNOWN="controller-2 controller-30" \
        run -1 bash "$BATS_TEST_DIRNAME/devstack.bash" stack extra
    [ "$output" = "Nova does not know these nova-computes after 60 seconds: \
controller, controller-3; see their logs with journalctl --unit \
'devstack@n-cpu*'." ]
    [ "$(grep -cx openstack "$ROOT/calls")" = 61 ]
    run -1 grep nova-manage "$ROOT/calls"
}

@test "only the machine with the API makes services known" {
    ENABLED_SERVICES=n-cpu phase stack extra
    [ "$(tail -n 1 "$ROOT/calls")" = openstack ]
}

@test "a failure ends stack.sh" {
    printf '#!/bin/sh\nexit 3\n' > "$ROOT/bin/nova-manage"
    run -3 bash "$BATS_TEST_DIRNAME/devstack.bash" stack extra
}

@test "without n-cpu there is nothing to do" {
    touch "$nova/nova-cpu-2.conf"
    export ENABLED_SERVICES=n-api,ir-api VIRT_DRIVER=libvirt
    stack
    phase unstack
    phase clean
    [ ! -s "$ROOT/calls" ]
    has <(ls "$nova") nova-cpu-2.conf nova-cpu.conf nova.conf
    has "$nova/nova.conf" "DEFAULT compute_driver = ironic.IronicDriver"
}

@test "phases that are to come do nothing" {
    phase stack later
    phase later
    [ ! -s "$ROOT/calls" ]
}

@test "the trace is on again after the functions" {
    TRACED=1 phase stack install
    [[ $output == *"+ setup_develop "* ]]
    [[ $output != *"+ NOVA_IRONIC_RING_DIR="* ]]
    phase stack install
    [ -z "$output" ]
}

@test "unstack stops all services but devstack's own" {
    NOVA_IRONIC_RING_COMPUTES=12 \
        KNOWN="controller $(seq --format controller-%g 12)" stack
    rm "$ROOT/calls"
    # Whatever local.conf says by now.
    NOVA_IRONIC_RING_COMPUTES=none VIRT_DRIVER=fake phase unstack
    has <(sort -V "$ROOT/calls") \
        "stop_process n-cpu-"{2,3,4,5,6,7,8,9,10,11,12}
    [ -z "$output" ]
}

@test "unstack without services" {
    phase unstack
    [ ! -s "$ROOT/calls" ]
}

@test "clean removes the files" {
    stack
    phase clean
    has <(ls "$nova") nova-cpu.conf nova.conf
    rm -r "$nova"
    phase clean
    [ -z "$output" ]
}

@test "another driver is refused" {
    VIRT_DRIVER=libvirt refuses "VIRT_DRIVER is \"libvirt\": \
nova-ironic-ring needs VIRT_DRIVER=ironic in local.conf."
}

@test "plugins in the wrong order are refused" {
    local plugins
    for plugins in ,nova-ironic-ring,ironic ,a,nova-ironic-ring,b,ironic,c; do
        DEVSTACK_PLUGINS=$plugins refuses "The plugin ironic comes after \
nova-ironic-ring: enable it before that in local.conf."
    done
    for plugins in ,ironic,a,nova-ironic-ring ,nova-ironic-ring \
        ,ironic,nova-ironic-ring,ironic-ui ,nova-ironic-ring,my-ironic; do
        DEVSTACK_PLUGINS=$plugins phase stack pre-install
    done
}

@test "a bad number of services is refused" {
    local number
    for number in 0 -1 many 1.5 08 "1 2"; do
        NOVA_IRONIC_RING_COMPUTES=$number refuses \
            "NOVA_IRONIC_RING_COMPUTES is \"$number\": give the number of \
nova-computes, at least 1, in local.conf."
    done
}

@test "several services have one shard" {
    IRONIC_SHARDS=1 phase stack pre-install
}

@test "bad groups are refused" {
    local groups
    cd "$BATS_TEST_DIRNAME"
    for groups in rack-a rack-a: rack-a:0 rack-a:x "*" "rack-a:2rack-b:1" \
        "rack a:3" rack-a:3:1 rack-a=3 "a:1,b:2"; do
        NOVA_IRONIC_RING_GROUPS=$groups refuses \
            "NOVA_IRONIC_RING_GROUPS is \"$groups\": give groups and numbers \
of services, such as \"rack-a:2 rack-b:1\", in local.conf."
    done
}

@test "a group that is named twice is refused" {
    NOVA_IRONIC_RING_GROUPS="rack-a:1 b:1 Rack-A:1" refuses \
        "NOVA_IRONIC_RING_GROUPS has the group \"rack-a\" twice: name each \
once in local.conf."
    NOVA_IRONIC_RING_GROUPS=":1 b:1 :1" refuses \
        "NOVA_IRONIC_RING_GROUPS has the group \"\" twice: name each once in \
local.conf."
    NOVA_IRONIC_RING_GROUPS="rack:1 rack-a:1 a:1" phase stack pre-install
}

@test "groups with another number of services are refused" {
    NOVA_IRONIC_RING_GROUPS="rack-a:2 rack-b:2" refuses \
        "NOVA_IRONIC_RING_GROUPS has 4 services and NOVA_IRONIC_RING_COMPUTES \
is 3: make them agree in local.conf."
}

@test "bad peers are refused" {
    local peers
    export NOVA_IRONIC_RING_GROUPS=rack-a:3
    for peers in compute1 rack-a: rack-a:a,,b "rack-a:a," "rack-a:a, b" "*"; do
        NOVA_IRONIC_RING_PEERS=$peers refuses \
            "NOVA_IRONIC_RING_PEERS is \"$peers\": give groups and host names \
of services, such as \"rack-a:compute1,compute1-2\", in local.conf."
    done
}

@test "peers without a group are refused" {
    NOVA_IRONIC_RING_GROUPS=rack-a:3 \
        NOVA_IRONIC_RING_PEERS="Rack-A:a rack-b:b" refuses \
        "NOVA_IRONIC_RING_PEERS has the group \"rack-b\", which \
NOVA_IRONIC_RING_GROUPS has not: name it there as well, or not at all, in \
local.conf."
    NOVA_IRONIC_RING_PEERS=":a" refuses \
        "NOVA_IRONIC_RING_PEERS has the group \"\", which \
NOVA_IRONIC_RING_GROUPS has not: name it there as well, or not at all, in \
local.conf."
}

@test "bad options are refused" {
    local options
    for options in partitions partitions= "partitions = 64" "partitions=*" \
        "Partitions=64" "[ironic_ring]partitions=64"; do
        NOVA_IRONIC_RING_OPTIONS=$options refuses \
            "NOVA_IRONIC_RING_OPTIONS is \"$options\": give options of \
[ironic_ring], such as \"partitions=64 failover_after=120\", in local.conf."
    done
}

@test "unknown options are refused" {
    local option
    for option in partition handover_; do
        NOVA_IRONIC_RING_OPTIONS="partitions=64 $option=1" refuses \
            "NOVA_IRONIC_RING_OPTIONS has \"$option\": choose options of \
[ironic_ring], which etc/nova-ironic-ring.conf.sample lists, in local.conf."
    done
}
