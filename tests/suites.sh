# Sourced by kit, which sets here, build, venv, say, die, has, want and in_namespaces. What `./kit test` runs, and what becomes of a test that fails.
# shellcheck shell=sh
: "${here:?}" "${build:?}" "${venv:?}"

# A machine that does other work too lets one test in thousands come too late. More that fail at once are no chance.
again_at_most=10

suite() { # suite NAME RUNNER [PYTEST'S ARGUMENT …]: what fails runs once more, alone; it is named in any case
    suite_name=$1 suite_runner=$2
    shift 2
    suite_cache=$build/suite-$suite_name
    rm -rf "$suite_cache"
    suite_status=0
    (cd "$here" && $suite_runner "$venv/bin/python" -m pytest -o cache_dir="$suite_cache" "$@") || suite_status=$?
    # 1: tests failed. All else (a usage error, an interruption, none collected) is not a test's.
    [ "$suite_status" -eq 1 ] || return "$suite_status"
    suite_failed=$(failed_tests "$suite_cache")
    suite_count=$(printf '%s\n' "$suite_failed" | grep -c .) || true
    if [ "$suite_count" -eq 0 ] || [ "$suite_count" -gt "$again_at_most" ]; then return 1; fi
    say "$suite_name tests: $suite_count failed; once more, alone:"
    suite_status=0
    # The last -n counts: one after the other, with nothing beside them.
    (cd "$here" && $suite_runner "$venv/bin/python" -m pytest -o cache_dir="$suite_cache" "$@" -n 0 --last-failed) || suite_status=$?
    [ "$suite_status" -eq 0 ] || return "$suite_status"
    say "NOT RELIABLE: these failed, and passed when they ran alone; the first run's report above says how:"
    printf '%s\n' "$suite_failed" | sed 's/^/kit:   /' >&2
}

failed_tests() { # failed_tests CACHE: their names, a line each
    if [ -f "$1/v/cache/lastfailed" ]; then
        "$venv/bin/python" -c 'import json, sys; print("\n".join(json.load(open(sys.argv[1]))))' "$1/v/cache/lastfailed"
    fi
}

checks() {
    say "ruff"; (cd "$here" && ruff check --quiet . && ruff format --check --quiet .) || die "ruff found something" 1
    say "mypy --strict"; (cd "$here" && mypy --no-error-summary) || die "mypy found something" 1
    say "import arrows"; (cd "$here" && lint-imports --no-cache >"$build/lint-imports.log" 2>&1) \
        || { cat "$build/lint-imports.log" >&2; die "an import goes against the arrows" 1; }
    if has shellcheck; then say "shellcheck"; shellcheck -x -P "$here" "$here/kit" "$here"/requirements/*.sh "$here"/tests/*.sh "$here/.ci/run" || die "shellcheck found something" 1; fi
    say "ansible-lint, yamllint"
    (cd "$here/ansible" && yamllint --strict . && ansible-lint --offline -q --nocolor) || die "something is wrong in ansible/" 1
    say "boards and alarms"; (cd "$here" && python -m tandem_dashboards generate --check) || die "a generated file is not what its source makes" 1
    say "hardware: what is made of its sources"
    (cd "$here" && python -m tandem_hardware generate --check 2>"$build/hardware.log") || { cat "$build/hardware.log" >&2; die "hardware/ is not what its sources make" 1; }
    say "cargo test"; (cd "$here/firmware/bench/link" && RUSTFLAGS='-D warnings' cargo test --quiet --target-dir "$build/link-test") \
        || die "cargo test failed" 1
    (cd "$here/server/trace-core" && RUSTFLAGS='-D warnings' cargo test --quiet --no-default-features --target-dir "$build/trace-core-test") \
        || die "cargo test failed" 1
}

hardware_packages() { # what draws hardware/
    has openscad || want openscad "the case: pictures and what is printed"
    has xvfb-run || { want xvfb "a screen for the case's pictures"; want xauth "that screen"; want libgl1-mesa-dri "draws on it"; }
    has dot || want graphviz "wiring"
}

test_packages() { # what only tests need
    hardware_packages
    has shellcheck || want shellcheck "checks this script"
    has ffmpeg || want ffmpeg "makes DASH content of a video, in a test"
    { has mkfs.ext4 && has e2fsck && has debugfs; } || want e2fsprogs "makes the disks whose power the tests cut, and images"
    has mcopy || want mtools "images for probes: their boot partition"
    has mkfs.vfat || want dosfstools "images for probes: the tests' own"
    has sfdisk || want fdisk "images for probes: the tests' own"
}

hardware_tests() { # --hardware and pytest's own options: a real probe with real modems
    for option in "$@"; do
        shift
        [ "$option" = --hardware ] || set -- "$@" "$option"
    done
    "$venv/bin/python" -m pytest -p no:cacheprovider --tb=line --rootdir "$here" -c "$here/pyproject.toml" "$here/tests/hardware" "$@"
}
