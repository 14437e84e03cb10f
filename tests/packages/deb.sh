#!/usr/bin/env bash
# Installs the Debian package in a chroot and uses it as people do: a server, a member of the group, somebody else, an
# upgrade from the version before, a removal and a purge.
#
# tests/packages/deb.sh [PROGRAM]   packs this `campaign`; without it, builds a debug binary
# tests/packages/deb.sh FOLDER      tests the packages that deploy/package.sh wrote to this folder
#
# Needs root and debootstrap. The first call fetches a minimal Debian from the mirror of this machine and keeps it in
# ${CAMPAIGN_CHROOT:-target/chroot}; later calls use a copy of it without network.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../support/scripts.sh"
[ "$(id -u)" = 0 ] || fail "needs root: a chroot is not open to others"
need curl debootstrap dpkg-deb python3 setpriv
root=$(realpath "$here/../..")
packages=
if [ -d "${1:-}" ]; then
    packages=$(realpath "$1")
    program_or_build "$(ls "$packages"/campaign-*-x86_64-linux)"
else
    program_or_build "${1:-}"
fi
base=${CAMPAIGN_CHROOT:-${CARGO_TARGET_DIR:-$root/target}/chroot}
. /etc/os-release
if [ ! -e "$base/complete" ]; then
    rm -rf "$base"
    mkdir -p "$base"
    debootstrap --variant=minbase --include=adduser,ca-certificates,debconf,man-db "${VERSION_CODENAME:-bookworm}" \
        "$base" >"$base.log" 2>&1 || fail "debootstrap failed: see $base.log"
    touch "$base/complete"
fi
in_a_folder
chroot=$folder/chroot
cp -a "$base" "$chroot"
# Only what the programs need: no service of this machine is in the chroot.
mkdir -p "$chroot/proc"
mount -t proc proc "$chroot/proc"
end_chroot() {
    umount "$chroot/proc" || true
    end
}
trap end_chroot EXIT

step() { printf '\n== %s\n' "$*"; }
inside() { chroot "$chroot" "$@"; }
# Runs a command in the shell of a person, in the folder of the campaigns.
as() {
    local user=$1
    shift
    inside setpriv --reuid "$user" --regid "$user" --init-groups env -i HOME="/home/$user" PATH=/usr/bin:/bin \
        sh -c 'cd /srv/campaigns; umask 022; exec "$@"' sh "$@"
}
# Runs a command that must exit with a code, and keeps its output in `told`.
exits() {
    local code=$1 got=0
    shift
    told=$("$@" 2>&1) || got=$?
    [ "$got" = "$code" ] || fail "\`$*\` exited with $got instead of $code: $told"
}
says() { [[ $told == *"$1"* ]] || fail "no \`$1\` in: $told"; }
mode() { inside stat -c '%U:%G %a' "$1"; }
is() { [ "$1" = "$2" ] || fail "$3: $1 instead of $2"; }

step "packages of this version and of an earlier one"
mkdir new old
if [ -n "$packages" ]; then
    cp "$packages"/* new
else
    "$root/deploy/package.sh" --binary "$program" --out "$folder/new"
fi
(cd new && sha256sum --check --quiet SHA256SUMS)
new=$(basename new/*.deb) old=campaign_0.0.9_amd64.deb
dpkg-deb -R "new/$new" earlier
sed -i 's/^Version: .*/Version: 0.0.9/' earlier/DEBIAN/control
dpkg-deb --root-owner-group -Znone -b earlier "old/$old" >/dev/null
rm -r earlier
tar -tzf new/*.tar.gz >listing
for file in man/man1/campaign-run.1 completions/_campaign completions/campaign.bash completions/campaign.fish \
    completions/campaign.ps1 systemd/campaign.service docs/install.md; do
    grep -q "/$file\$" listing || fail "the tarball has no $file"
done
cp new/*.deb old/*.deb "$chroot/root"

step "installation"
began=$(date +%s%N)
export DEBIAN_FRONTEND=noninteractive
exits 0 inside dpkg -i "/root/$old"
says 'adduser NAME campaign'
is "$(mode /var/lib/campaign)" "campaign:campaign 2770" "/var/lib/campaign"
is "$(mode /srv/campaigns)" "campaign:campaign 2770" "/srv/campaigns"
is "$(mode /etc/campaign)" "root:campaign 750" "/etc/campaign"
is "$(mode /etc/campaign/environment)" "root:root 600" "/etc/campaign/environment"
inside man -w campaign campaign-gateway-add >/dev/null || fail "no manual pages"
for user in olena ivan; do inside adduser --quiet --disabled-password --gecos '' "$user"; done
inside adduser --quiet olena campaign
# The first rehearsal of a new user.
exits 0 as olena campaign init welcome
exits 0 as olena campaign run welcome.yaml
says "This was a rehearsal"
printf 'from dpkg -i to the first rehearsal: %s ms\n' $((($(date +%s%N) - began) / 1000000))
rm -rf "$chroot"/var/lib/campaign/* "$chroot"/srv/campaigns/*

step "a gateway, and a campaign that the group shares"
CAMPAIGN_STATE_DIR=$folder/gateway "$program" sandbox --listen 127.0.0.1:0 --journal "$folder/journal" --json \
    >"$folder/gateway.json" &
servers+=($!)
until [ -s "$folder/gateway.json" ]; do sleep 0.1; done
url=$(python3 -c 'import json, sys; print(json.loads(sys.stdin.readline())["base_url"])' <"$folder/gateway.json")
install -m 0640 -o root -g "$(inside getent group campaign | cut -d: -f3)" /dev/stdin "$chroot/etc/campaign/gateway.key" \
    <<<sandbox
as olena sh -c 'cat >gateways.yaml' <<YAML
production:
  base_url: $url
  api_key: { file: /etc/campaign/gateway.key }
  rate: 100/s
YAML
as olena sh -c 'cat >sale.csv' <<CSV
phone
+380500000001
+380500000002
+380500000003
+380500000004
+380500000005
+380500000006
CSV
as olena sh -c 'cat >sale.yaml' <<YAML
gateway: production
recipients: { file: sale.csv }
channels:
  - sms: { signature: OlenaCo, message: Hello }
YAML

step "the server, as its user and with the lines of its unit"
start_server() {
    local unit=$chroot/usr/lib/systemd/system/campaign.service variables command
    variables=$(sed -n 's/^Environment=//p' "$unit")
    # Any free port instead of the fixed one.
    command=$(sed -n 's/^ExecStart=//p' "$unit" | sed 's/127.0.0.1:8040/127.0.0.1:0/')
    [[ $command == "/usr/bin/campaign serve "* ]] || fail "the unit starts \`$command\`"
    rm -f "$folder/server.json"
    # shellcheck disable=SC2086
    chroot "$chroot" setpriv --reuid campaign --regid campaign --init-groups env -i $variables \
        sh -c "cd /srv/campaigns; umask $(sed -n 's/^UMask=//p' "$unit"); exec $command" >"$folder/server.json" &
    server=$!
    servers+=("$server")
    until [ -s "$folder/server.json" ]; do kill -0 "$server" || fail "the server ended"; sleep 0.1; done
    address=$(python3 -c 'import json, sys; print(json.loads(sys.stdin.readline())["listen"])' <"$folder/server.json")
    curl -fsS "http://$address/healthz" >/dev/null || fail "the server does not answer"
}
stop_server() { kill "$server"; wait "$server" || fail "the server exited with $?"; }
start_server

step "a member of the group sends with the server's ledger"
exits 0 as olena campaign run sale.yaml --limit 2 --json
curl -fsS "http://$address/metrics" >metrics
grep -q 'campaign_messages{gateway="production",state="accepted"} 2' metrics || fail "the server does not see the member's run"
[ ! -e "$chroot/home/olena/.local" ] || fail "the member has a second ledger"
exits 0 as olena campaign suppress add +380500000006

step "somebody else cannot send beside it"
exits 2 as ivan campaign run /srv/campaigns/sale.yaml
cp "$chroot"/srv/campaigns/{sale.yaml,sale.csv,gateways.yaml} "$chroot/home/ivan"
install -m 0600 /dev/stdin "$chroot/home/ivan/gateway.key" <<<sandbox
sed -i 's#/etc/campaign/gateway.key#gateway.key#' "$chroot/home/ivan/gateways.yaml"
inside chown -R ivan:ivan /home/ivan
for command in "run sale.yaml" "schedule add sale.yaml" "test sale.yaml --to +380500000001" "serve" \
    "connector --allow-send" "suppress add +380500000001"; do
    # shellcheck disable=SC2086
    exits 2 as ivan sh -c "cd; exec campaign $command"
    says "system ledger in \`/var/lib/campaign\`"
    says "adduser NAME campaign"
    says "--state-dir DIR"
done
[ ! -e "$chroot/home/ivan/.local" ] || fail "the other person has a second ledger"
exits 0 as ivan sh -c 'cd; campaign run sale.yaml --gateway sandbox'

step "the user of the server sends the rest"
exits 0 inside setpriv --reuid campaign --regid campaign --init-groups env -i CAMPAIGN_STATE_DIR=/var/lib/campaign \
    sh -c 'cd /srv/campaigns; umask 0007; campaign run sale.yaml'
exits 0 as olena campaign run sale.yaml
says "no recipients are left"
exits 0 as olena campaign results sale
exits 0 as olena campaign ledger check

# Each person has exactly one message.
count_messages() {
    python3 - "$folder/journal" <<'PY'
import collections, json, sys
numbers = collections.Counter()
for line in open(sys.argv[1]):
    phone = json.loads(line).get("phone")
    if phone:
        numbers[phone] += 1
print(sorted(numbers.values()))
PY
}
is "$(count_messages)" "[1, 1, 1, 1, 1]" "messages of five people"

step "the group can change every file, whoever created it"
while read -r path; do
    case $(mode "$path") in
        *":campaign 660" | *":campaign 2770") ;;
        *) fail "$path is $(mode "$path")" ;;
    esac
done < <(inside find /var/lib/campaign /srv/campaigns/results)

step "an upgrade while the server runs"
exits 0 inside dpkg -i "/root/$new"
is "$(inside dpkg-query -W -f '${Version}' campaign)" "$(dpkg-deb -f "new/$new" Version)" "the installed version"
curl -fsS "http://$address/healthz" >/dev/null || fail "the server does not answer after the upgrade"
stop_server
start_server
exits 0 as olena campaign run sale.yaml
says "no recipients are left"
stop_server

step "a ledger that only the server could change is shared by the package"
# Five digits also remove the setgid bit.
chmod 00700 "$chroot/var/lib/campaign"
chmod 0600 "$chroot/var/lib/campaign/ledger.sqlite"
exits 2 as olena sh -c 'campaign run sale.yaml'
exits 0 inside dpkg -i "/root/$new"
exits 0 as olena campaign run sale.yaml
says "no recipients are left"

step "a removal and a purge keep the ledger"
exits 0 inside dpkg -r campaign
[ ! -e "$chroot/usr/bin/campaign" ] || fail "the program is still there"
exits 0 inside dpkg -P campaign
says "the ledger in /var/lib/campaign is kept"
[ -e "$chroot/var/lib/campaign/ledger.sqlite" ] || fail "the ledger is gone"
[ -e "$chroot/srv/campaigns/sale.yaml" ] || fail "the campaigns are gone"
exits 0 inside dpkg -i "/root/$new"
exits 0 as olena campaign run sale.yaml
says "no recipients are left"

step "a purge deletes it after the answer to the question"
exits 0 inside sh -c 'echo "campaign campaign/purge-ledger boolean true" | debconf-set-selections'
exits 0 inside dpkg -P campaign
[ ! -e "$chroot/var/lib/campaign" ] || fail "the ledger is still there"
[ -e "$chroot/srv/campaigns/sale.yaml" ] || fail "the campaigns are gone"

printf '\n== all passed\n'
