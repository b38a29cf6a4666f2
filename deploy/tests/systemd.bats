#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0

# The units of systemd, and what they run. systemd itself is not started.

bats_require_minimum_version 1.5.0

setup() {
    units=$BATS_TEST_DIRNAME/../systemd
    PATH=$BATS_TEST_TMPDIR/bin:$PATH
    calls=$BATS_TEST_TMPDIR/calls
    mkdir "$BATS_TEST_TMPDIR/bin"
    touch "$calls"
    stand_in openstack 0
}

# A command that writes down what it was called with.
stand_in() {
    printf '#!/bin/sh\necho %s "$@" >> %s\nexit %s\n' "$1" "$calls" "$2" \
        > "$BATS_TEST_TMPDIR/bin/$1"
    chmod +x "$BATS_TEST_TMPDIR/bin/$1"
}

@test "systemd understands every line of the units" {
    root=$BATS_TEST_TMPDIR/root
    mkdir -p "$root/etc/systemd/system" "$root/usr/bin" "$root/bin" \
        "$root/usr/local/libexec"
    cp -r "$units"/*.service* "$root/etc/systemd/system"
    # What the units name has to be there.
    for unit in basic sysinit shutdown network-online multi-user; do
        printf '[Unit]\nDescription=%s\n' "$unit" \
            > "$root/etc/systemd/system/$unit.target"
    done
    printf '[Slice]\n' > "$root/etc/systemd/system/system.slice"
    for program in usr/bin/nova-compute bin/kill \
        usr/local/libexec/nova-compute-ironic-fence; do
        printf '#!/bin/sh\n' > "$root/$program"
        chmod +x "$root/$program"
    done
    run systemd-analyze verify --man=no --root="$root" \
        nova-compute-ironic@rack1-a.service \
        nova-compute-ironic-fence@rack1-a.service
    echo "$output"
    [ "$status" -eq 0 ]
    # A key that is not known is no failure to systemd.
    [ -z "$output" ]
}

@test "a service that has failed for good is forced down" {
    stand_in systemctl 0
    run "$units/nova-compute-ironic-fence" rack1-a nova-compute-ironic@rack1-a.service
    [ "$status" -eq 0 ]
    grep -Fx "systemctl is-failed --quiet nova-compute-ironic@rack1-a.service" \
        "$calls"
    grep -Fx "openstack compute service set --down rack1-a nova-compute" \
        "$calls"
    [[ $output == *"openstack compute service set --up rack1-a"* ]]
}

@test "a service that systemd starts again is not" {
    stand_in systemctl 1
    run "$units/nova-compute-ironic-fence" rack1-a nova-compute-ironic@rack1-a.service
    [ "$status" -eq 0 ]
    [[ $output == *"has not failed for good"* ]]
    run ! grep openstack "$calls"
}

@test "it fails where Nova is not told, so that systemd tries again" {
    stand_in systemctl 0
    stand_in openstack 1
    run "$units/nova-compute-ironic-fence" rack1-a nova-compute-ironic@rack1-a.service
    [ "$status" -eq 1 ]
    [[ $output != *"is told"* ]]
}

@test "the watchdog is faster than failover_after may be" {
    # What doc/source/deploy/systemd.rst has for failover_after.
    seconds=$(sed -n 's/^WatchdogSec=//p' \
        "$units/nova-compute-ironic@.service.d/fence.conf")
    told=$(sed -n 's/^ *failover_after = //p' \
        "$BATS_TEST_DIRNAME/../../doc/source/deploy/systemd.rst")
    [ "$((seconds + 60))" -lt "$told" ]
}
