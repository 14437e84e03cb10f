# Commands for people who work on `campaign`. `just` lists them. CONTRIBUTING.md explains when to use which.

_default:
    @just --list --unsorted

# Build and run the first example on the built-in sandbox
run *ARGS='run campaigns/welcome.yaml':
    cargo run -- {{ARGS}}

# Run all tests, or those whose names contain NAME
test NAME='':
    cargo test -- {{NAME}}

# Check the format and the lints
lint:
    cargo fmt --all --check
    cargo clippy --locked --all-targets -- -D warnings

# Run everything that must pass before a merge
ci:
    .ci/run

# Run the stories about sharing and recovery with a PostgreSQL ledger
test-postgres:
    STORIES_OVER=postgres CAMPAIGN_NEEDS_POSTGRES=1 cargo test --test stories -- doubt once plans receipts recovery workers

# Run a hundred thousand simulated worlds
simulate:
    cargo test --lib simulation -- --ignored

# Repeat one simulated world
simulate-seed SEED:
    SIMULATION_SEED={{SEED}} cargo test --lib despite_any_failure

# Kill runs at ten thousand random moments
kill:
    cargo test --test stories recovery::kills -- --ignored

# Plant each mistake whose name contains NAME, and see its test fail (all of them take more than an hour)
mistakes NAME='':
    MISTAKE={{NAME}} cargo test --test stories mistakes -- --ignored --nocapture

# Search for inputs that break the parsers of untrusted input, for so many seconds each
fuzz SECONDS='600' *TARGETS:
    fuzz/run.py {{SECONDS}} {{TARGETS}}

# Plant small changes in the code that decides what is sent, and count those that no test catches
mutants *ARGS:
    tests/mutants.py {{ARGS}}

# Serve for a day in so many seconds, with kills, and check memory, open files and counters (needs Linux)
soak SECONDS='3600':
    cargo build --release
    tests/soak.py target/release/campaign {{SECONDS}}

# Run every slow test, which takes many hours, and write what they showed into docs/testing.md
proof *STEPS:
    tests/proof.py {{STEPS}}

# Accept changed output, then review the difference
accept:
    INSTA_UPDATE=always cargo test --test stories looks::
    git status --short tests/looks

# Regenerate docs/commands.md
docs-commands:
    CAMPAIGN_WRITE_DOCS=1 cargo test --test stories docs::

# Build the API documentation and fail on broken links
docs-api:
    RUSTDOCFLAGS=-Dwarnings cargo doc --no-deps

# Run a benchmark: throughput, commands, timing, peers, receipts, shared, sandbox or connector
bench NAME='throughput':
    cargo bench --bench {{NAME}}

# Measure the first build and the first test from a fresh clone
build-cost:
    tests/build-cost.sh

# Build the program that packages contain, with the commit that `campaign --version` shows
dist:
    CAMPAIGN_COMMIT="$(git rev-parse --short=12 HEAD)" CAMPAIGN_COMMIT_DATE="$(git show -s --format=%cs HEAD)" \
        cargo build --locked --profile dist

# Make the binary, tarball, Debian package, SBOM and checksums in target/packages, without network
package *ARGS:
    deploy/package.sh {{ARGS}}

# The same for systems from Debian 11 and Ubuntu 20.04 on; needs root and debootstrap
package-portable *ARGS:
    deploy/debian-11.sh {{ARGS}}

# Install the Debian package in a chroot, and send, upgrade, remove and purge (needs root)
test-package *ARGS:
    tests/packages/deb.sh {{ARGS}}

# Check licences, advisories and sources of the dependencies
deny:
    cargo deny check
