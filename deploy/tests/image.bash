#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Builds a container image with buildah, and starts nova-compute of a lab in it:
# it joins the ring, and builds a server. The base is made here: Debian 12, with
# Nova in a virtual environment where published images have it. In
# /var/lib/openstack (openstack-helm), the image is that of deploy/kubernetes.
# With /var/lib/kolla/venv as the only argument, the source distribution is
# installed as Kolla installs its plugins. As root, with buildah and mmdebstrap.

set -euo pipefail
if [ "$(id --user)" != 0 ]; then
    # With the Python of whoever runs this, whatever sudo makes of PATH.
    exec sudo --preserve-env env PATH="$PATH" "$0" "$@"
fi
cd "$(dirname "$0")/../.."
venv=${1:-/var/lib/openstack}
name=image
lab=(tools/lab --name "$name")
work=$(mktemp --directory)
# Nothing of this is to be among the images of whoever runs this.
export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
buildah=(buildah --root "$work/images" --runroot "$work/run")
started=

end() {
    if [ -n "$started" ]; then
        kill -- "-$started" || true
        wait "$started" || true
    fi
    "${lab[@]}" down > /dev/null 2>&1 || true
    "${buildah[@]}" rm --all > /dev/null || true
    rm --recursive --one-file-system "$work"
}
trap end EXIT

# How pip reaches the packages, and whom it trusts, is as on this machine.
settings=(--env PIP_CERT=/trusted)
for each in PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_TRUSTED_HOST; do
    if [ -n "${!each:-}" ]; then
        settings+=(--env "$each=${!each}")
    fi
done
trusted=/etc/ssl/certs/ca-certificates.crt

echo "Making a base with Nova in $venv"
mmdebstrap --quiet --variant=minbase --include=ca-certificates,python3-venv \
    bookworm "$work/base.tar" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}"
container=$("${buildah[@]}" from scratch)
"${buildah[@]}" add --quiet "$container" "$work/base.tar" / > /dev/null
rm "$work/base.tar"
"${buildah[@]}" run "$container" -- python3 -m venv "$venv"
"${buildah[@]}" run "${settings[@]}" --volume "$trusted:/trusted:ro" \
    --volume "$PWD/constraints:/constraints:ro" "$container" -- \
    "$venv/bin/pip" --quiet install \
    --constraint /constraints/newest.txt nova PyMySQL
"${buildah[@]}" config --env "PATH=$venv/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
    "$container"
"${buildah[@]}" commit --quiet --rm "$container" localhost/nova > /dev/null

echo 'Building the image'
mkdir "$work/context"
if [ "$venv" = /var/lib/kolla/venv ]; then
    # kolla-build unpacks what it is given, and pip installs all plugins with
    # the constraints of the release.
    python3 -m build --sdist --outdir "$work" . > "$work/build.log"
    tar --extract --file "$work"/*.tar.gz --directory "$work/context"
    container=$("${buildah[@]}" from localhost/nova)
    "${buildah[@]}" add --quiet "$container" "$work/context" /plugins \
        > /dev/null
    "${buildah[@]}" run "${settings[@]}" --volume "$trusted:/trusted:ro" \
        --volume "$PWD/constraints:/constraints:ro" "$container" -- sh -ec '
        python3 -m pip --no-cache-dir --quiet install --upgrade \
            --constraint /constraints/newest.txt /plugins/*
        python3 -W ignore -c "import nova.virt.ironic_ring"'
    "${buildah[@]}" commit --quiet --rm "$container" localhost/ring > /dev/null
else
    cp deploy/kubernetes/Dockerfile "$work/context"
    python3 -m pip --quiet wheel --no-deps --wheel-dir "$work/context" .
    "${buildah[@]}" bud --quiet --build-arg NOVA_IMAGE=localhost/nova \
        --volume "$trusted:$trusted:ro" --tag localhost/ring "$work/context"
fi

"${lab[@]}" up --computes 2 --nodes 6
"${lab[@]}" stop compute-2
directory=$(dirname "$("${lab[@]}" shell -- printenv OS_CLIENT_CONFIG_FILE)")
container=$("${buildah[@]}" from localhost/ring)
setsid "${buildah[@]}" run --volume "$directory:$directory" "$container" -- \
    nova-compute --config-file "$directory/etc/nova/nova.conf" \
    --config-file "$directory/etc/nova/compute-2.conf" \
    > "$work/nova-compute.log" 2>&1 &
started=$!
for _ in {1..60}; do
    if "${lab[@]}" ring show -f value -c Host -c State | grep -q 'compute-2 member'
    then
        break
    fi
    sleep 2
done
if ! "${lab[@]}" shell -- openstack --os-compute-api-version 2.90 server create \
    --image none --flavor baremetal --nic none --host compute-2 \
    --wait -f value -c status -c OS-EXT-SRV-ATTR:host in-image
then
    tail --lines=20 "$work/nova-compute.log"
    exit 1
fi
"${lab[@]}" ring show
echo 'nova-compute has joined the ring from the image, and built a server.'
