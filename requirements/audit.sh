#!/bin/sh
# ./kit audit: packages are installed as pinned, their licences go with Tandem's ([tool.pip-licenses] in pyproject.toml), and no advisory
# names one, where the programs that ask for advisories are here.
set -eu
cd "$(dirname "$0")/.."

say() { printf 'kit: %s\n' "$*" >&2; }
status=0
check() { "$@" || { status=1; say "above: $*"; }; }

check python -m pip install --dry-run --quiet --no-deps --no-index --require-hashes -r requirements/lock.txt
check pip-licenses --summary --order=count
if command -v pip-audit >/dev/null; then check pip-audit --require-hashes --disable-pip -r requirements/lock.txt
else say "not checked: known holes of Python's packages (pip-audit is not installed)"
fi
for crate in firmware/bench/link server/trace-core; do
    if command -v cargo-audit >/dev/null; then (cd "$crate" && { [ -f Cargo.lock ] || check cargo generate-lockfile --quiet; check cargo audit; exit "$status"; }) || status=1
    else say "not checked: known holes of the crates of $crate (cargo-audit is not installed)"
    fi
done
exit "$status"
