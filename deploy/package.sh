#!/usr/bin/env bash
# Builds the packages for x86_64 Linux in target/packages: the binary, a tarball with manual pages and completions, a
# Debian package, an SBOM, and checksums. It does not use the network: run `cargo fetch --locked` once beforehand.
#
# deploy/package.sh                    builds the program with the profile `dist`, which takes a quarter of an hour
# deploy/package.sh --binary PROGRAM   packages a program that is already built
# deploy/package.sh --out DIR          writes to another folder
#
# The program needs the glibc that the script prints, and the Debian package depends on it. It is never newer than the
# glibc of this machine: for older systems, use deploy/debian-11.sh.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
out=$target/packages
binary=

fail() { printf 'package.sh: %s\n' "$*" >&2; exit 1; }
say() { printf '== %s\n' "$*"; }

while [ $# -gt 0 ]; do
    case "$1" in
        --binary) binary=$(realpath "$2"); shift 2 ;;
        --out) out=$2; shift 2 ;;
        *) fail "unknown argument \`$1\`" ;;
    esac
done
[ "$(uname -sm)" = "Linux x86_64" ] || fail "packages can be built only on x86_64 Linux"
for tool in dpkg-deb gzip objdump python3 sha256sum tar; do
    command -v "$tool" >/dev/null || fail "needs \`$tool\` (Debian: binutils, dpkg, python3)"
done
mkdir -p "$out"
out=$(realpath "$out")
# The same source produces identical files.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH

if [ -z "$binary" ]; then
    say "building the program"
    CAMPAIGN_COMMIT=${CAMPAIGN_COMMIT-$(git -C "$root" rev-parse --short=12 HEAD 2>/dev/null || true)}
    CAMPAIGN_COMMIT_DATE=${CAMPAIGN_COMMIT_DATE-$(git -C "$root" show -s --format=%cs HEAD 2>/dev/null || true)}
    export CAMPAIGN_COMMIT CAMPAIGN_COMMIT_DATE
    (cd "$root" && cargo build --locked --offline --profile dist --bin campaign) >&2
    binary=$target/dist/campaign
fi
[ -x "$binary" ] || fail "no program at \`$binary\`"
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
install -m 0755 "$binary" "$stage/campaign"
program=$stage/campaign
! grep -q CAMPAIGN_FAILPOINT "$program" || fail "\`$binary\` contains failpoints; package the binary \`campaign\`"
# Packages contain no symbols. A panic still names its line.
strip "$program"
version=$("$program" --version | sed 's/^campaign \([^ ]*\).*/\1/')
name=campaign-$version-x86_64-linux

# The newest glibc whose symbols the program uses.
glibc=$(objdump -T "$program" 2>/dev/null | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1 | sed 's/GLIBC_//' || true)
[ -n "$glibc" ] || fail "cannot read which glibc \`$binary\` needs"
say "campaign $version: needs glibc $glibc or newer"

say "manual pages, completions and the SBOM"
"$program" man "$stage/man" --quiet
mkdir "$stage/completions"
for shell in bash zsh fish powershell; do
    "$program" completions "$shell" >"$stage/completions/campaign.$shell"
done
mv "$stage/completions/campaign.zsh" "$stage/completions/_campaign"
mv "$stage/completions/campaign.powershell" "$stage/completions/campaign.ps1"
"$root/deploy/sbom.py" "$version" >"$stage/sbom.json"

say "$name.tar.gz"
tree=$stage/$name
mkdir -p "$tree/man/man1" "$tree/systemd" "$tree/docs"
cp "$program" "$root/README.md" "$root/CHANGELOG.md" "$root"/LICENSE-* "$tree"
cp "$stage"/man/*.1 "$tree/man/man1"
cp -r "$stage/completions" "$tree/completions"
cp "$root"/docs/*.md "$tree/docs"
cp "$root"/deploy/*.service "$tree/systemd"
archive() {
    tar --sort=name --owner=0 --group=0 --numeric-owner --mode=u+rw,go+rX,go-w --mtime="@$SOURCE_DATE_EPOCH" \
        -C "$stage" -c "$1" | gzip -9n
}
archive "$name" >"$out/$name.tar.gz"

deb=campaign_${version}_amd64.deb
say "$deb"
tree=$stage/deb
doc=$tree/usr/share/doc/campaign
install -D -m 0755 "$program" "$tree/usr/bin/campaign"
for page in "$stage"/man/*.1; do
    install -D -m 0644 "$page" "$tree/usr/share/man/man1/$(basename "$page")"
done
gzip -9n "$tree"/usr/share/man/man1/*.1
install -D -m 0644 "$stage/completions/campaign.bash" "$tree/usr/share/bash-completion/completions/campaign"
install -D -m 0644 "$stage/completions/_campaign" "$tree/usr/share/zsh/vendor-completions/_campaign"
install -D -m 0644 "$stage/completions/campaign.fish" "$tree/usr/share/fish/vendor_completions.d/campaign.fish"
install -D -m 0644 "$stage/completions/campaign.ps1" "$tree/usr/share/campaign/completions/campaign.ps1"
install -D -m 0600 "$root/deploy/deb/environment" "$tree/etc/campaign/environment"
for unit in "$root"/deploy/*.service; do
    mkdir -p "$tree/usr/lib/systemd/system"
    # The package does not need the commands that install the unit by hand.
    sed -e 's#/usr/local/bin/campaign#/usr/bin/campaign#' -e '/^#   \|^#$/d' -e '/Without the package:$/d' "$unit" \
        >"$tree/usr/lib/systemd/system/$(basename "$unit")"
done
install -D -m 0644 -t "$doc" "$root/deploy/deb/copyright" "$root/README.md" "$root"/LICENSE-* "$stage/sbom.json"
install -D -m 0644 -t "$doc/docs" "$root"/docs/*.md
gzip -9nc "$root/CHANGELOG.md" >"$doc/changelog.gz"
chmod 0644 "$doc/changelog.gz" "$tree"/usr/share/man/man1/*.gz "$tree"/usr/lib/systemd/system/*
mkdir "$tree/DEBIAN"
install -m 0755 "$root/deploy/deb/postinst" "$root/deploy/deb/prerm" "$root/deploy/deb/postrm" "$tree/DEBIAN"
install -m 0644 "$root/deploy/deb/templates" "$tree/DEBIAN"
echo /etc/campaign/environment >"$tree/DEBIAN/conffiles"
cat >"$tree/DEBIAN/control" <<CONTROL
Package: campaign
Version: $version
Architecture: amd64
Maintainer: the authors of campaign <campaign@localhost>
Installed-Size: $(du -sk --exclude=DEBIAN "$tree" | cut -f1)
Depends: adduser, ca-certificates, debconf (>= 0.5) | debconf-2.0, libc6 (>= $glibc)
Section: net
Priority: optional
Description: sends message campaigns by SMS, Viber, RCS, voice, Telegram and WhatsApp
 You describe a campaign in a YAML file. campaign checks, rehearses and sends it
 through your messaging gateway, and records a result for each recipient. After
 a crash, no message is lost or sent twice.
 .
 The package creates the group campaign. Its members and the server share one
 ledger in /var/lib/campaign.
CONTROL
find "$tree" -type d -exec chmod 0755 {} +
find "$tree" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group -Zxz --build "$tree" "$out/$deb" >/dev/null

install -m 0755 "$program" "$out/$name"
install -m 0644 "$stage/sbom.json" "$out/campaign-$version.cdx.json"
(cd "$out" && sha256sum "$name" "$name.tar.gz" "$deb" "campaign-$version.cdx.json" >"SHA256SUMS")
say "in $out:"
(cd "$out" && du -h "$name" "$name.tar.gz" "$deb" "campaign-$version.cdx.json" SHA256SUMS)
