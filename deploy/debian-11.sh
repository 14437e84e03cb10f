#!/usr/bin/env bash
# Builds the packages for Debian 11, Ubuntu 20.04 and all newer systems: the program needs only glibc 2.30. A program that
# is built on a newer system needs a newer glibc. A static program with musl would need 1.7 times the CPU time per run.
#
# The program is built in a Debian 11 folder, target/debian-11, with the Rust of this machine. The first call creates the
# folder with debootstrap, which downloads packages from MIRROR, if it is set. It needs root.
#
# deploy/debian-11.sh             writes to target/packages
# deploy/debian-11.sh --out DIR   writes to another folder
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
system=$target/debian-11
fail() { printf 'debian-11.sh: %s\n' "$*" >&2; exit 1; }

[ "$(id -u)" -eq 0 ] || fail "needs root: chroot and mounts are not allowed for other users"
command -v debootstrap >/dev/null || fail "needs \`debootstrap\` (Debian: debootstrap)"
command -v rustc >/dev/null || fail "cannot find \`rustc\`: with sudo, pass your paths: sudo -E env PATH=\"\$PATH\" $0"
rust=$(cd "$root" && rustc --print sysroot)
cargo_home=${CARGO_HOME:-$HOME/.cargo}
(cd "$root" && cargo fetch --locked --quiet)
if [ ! -e "$system/complete" ]; then
    rm -rf "$system"
    mkdir -p "$system"
    debootstrap --variant=minbase --include=gcc,libc6-dev bullseye "$system/files" ${MIRROR:+"$MIRROR"} >&2
    mkdir -p "$system/files/source" "$system/files/target" "$system/files/cargo" "$system/files$rust" "$system/target"
    touch "$system/complete"
fi

commit=${CAMPAIGN_COMMIT-$(git -C "$root" rev-parse --short=12 HEAD 2>/dev/null || true)}
date=${CAMPAIGN_COMMIT_DATE-$(git -C "$root" show -s --format=%cs HEAD 2>/dev/null || true)}
export root target system rust cargo_home commit date
# The mounts end with the shell that makes them.
unshare --mount --propagation private bash -euo pipefail -c '
    files=$system/files
    mkdir -p "$files$rust"
    mount --bind "$root" "$files/source"
    mount --bind "$system/target" "$files/target"
    mount --bind "$cargo_home" "$files/cargo"
    mount --bind "$rust" "$files$rust"
    mount -t proc proc "$files/proc"
    chroot "$files" /usr/bin/env -i PATH="$rust/bin:/usr/bin:/bin" HOME=/root CARGO_HOME=/cargo CARGO_TARGET_DIR=/target \
        CARGO_INCREMENTAL=0 CAMPAIGN_COMMIT="$commit" CAMPAIGN_COMMIT_DATE="$date" \
        cargo build --manifest-path /source/Cargo.toml --locked --offline --profile dist --bin campaign
' >&2
exec "$root/deploy/package.sh" --binary "$system/target/dist/campaign" "$@"
