#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Builds the Debian package in a new Debian 13, which has Nova 31, has lintian
# check it, installs it beside Debian's nova-compute-ironic, has Nova load both
# drivers, and sees that the package leaves nothing behind. As root, with
# mmdebstrap.

set -euo pipefail
if [ "$(id --user)" != 0 ]; then
    exec sudo --preserve-env=DEBIAN_MIRROR "$0" "$@"
fi
cd "$(dirname "$0")/../.."
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
root=$(mktemp --directory)
# Never across a mount.
trap 'umount "$root/proc" || true; rm --recursive --one-file-system "$root"' EXIT

inside() {
    chroot "$root" env --ignore-environment DEBIAN_FRONTEND=noninteractive \
        HOME=/root LC_ALL=C.UTF-8 \
        PATH=/usr/sbin:/usr/bin:/sbin:/bin bash -euo pipefail -c "$1"
}

# No service starts while a package is installed.
mmdebstrap --variant=minbase \
    --include=build-essential,ca-certificates,lintian,nova-compute-ironic \
    trixie "$root" "$mirror"
mount -t proc proc "$root/proc"
mkdir "$root/build" "$root/build/source"
git ls-files -z --cached --others --exclude-standard |
    xargs -0 cp --parents --target-directory="$root/build/source"

inside 'apt-get update
    cd /build/source
    apt-get build-dep --yes --no-install-recommends .
    dpkg-buildpackage --no-sign
    lintian --fail-on error,warning --info ../*.changes'
# Python may write the bytecode of other packages when the driver is loaded.
listed='find /usr /etc /opt /srv -xdev \
    ! \( -path "*/__pycache__*" ! -path "*ironic*ring*" \) | sort'
inside "$listed" > "$root/before"
inside 'apt-get install --yes --no-install-recommends /build/*.deb
    sh /build/source/debian/tests/driver
    dpkg --verify python3-nova-ironic-ring
    apt-get purge --yes python3-nova-ironic-ring'
inside "$listed" | diff "$root/before" -
echo 'The Debian package is built, installed, loaded by Nova and removed.'
