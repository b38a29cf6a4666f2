#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0

# The package as an index of packages would have it.

bats_require_minimum_version 1.5.0

# Build the packages from a copy of the checkout, with some umask.
build() {
    copy=$BATS_FILE_TMPDIR/$1/copy
    mkdir -p "$copy"
    git ls-files -z --cached --others --exclude-standard |
        xargs -0 cp --parents --target-directory="$copy"
    cp -r .git "$copy"
    (cd "$copy" && umask "$2" &&
        python -m build --no-isolation --outdir "$BATS_FILE_TMPDIR/$1" .)
}

setup_file() {
    cd "$BATS_TEST_DIRNAME/../.." || return
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
    export SOURCE_DATE_EPOCH PBR_VERSION=1.0.0
    build one 022
    build two 077
}

setup() {
    cd "$BATS_FILE_TMPDIR" || return
    wheel=nova_ironic_ring-1.0.0-py3-none-any.whl
    sdist=nova_ironic_ring-1.0.0.tar.gz
}

@test "an index takes both" {
    twine check --strict "one/$wheel" "one/$sdist"
}

@test "two builds of a commit have the same bytes" {
    cmp "one/$wheel" "two/$wheel"
    cmp "one/$sdist" "two/$sdist"
}

@test "the source has what the wheel is made of, without git" {
    tar -xf "one/$sdist"
    cd "${sdist%.tar.gz}"
    env -u PBR_VERSION python -m build --no-isolation --wheel --outdir "$BATS_TEST_TMPDIR" .
    contents() { python -m zipfile --list "$1" | awk '{ print $1, $NF }' | sort; }
    diff <(contents "$BATS_FILE_TMPDIR/one/$wheel") <(contents "$BATS_TEST_TMPDIR/$wheel")
}

@test "pip installs it, Nova's name for the driver is found, and nothing is left" {
    python -m venv --without-pip venv
    every() { find venv -type f | sort; }
    every > before
    python -m pip --python venv install --no-deps --no-index "one/$wheel"
    venv/bin/python -c '
import importlib.metadata
import sys
assert importlib.metadata.version("nova-ironic-ring") == "1.0.0"
name = "nova.virt.ironic_ring"
found = [finder.find_spec(name, [], None) for finder in sys.meta_path]
assert any(spec and spec.origin.endswith("alias.py") for spec in found), found'
    venv/bin/python -m compileall -q venv/lib/*/site-packages/nova_ironic_ring
    python -m pip --python venv uninstall --yes nova-ironic-ring
    every | diff before -
}
