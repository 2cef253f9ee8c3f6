# Sourced by kit, which sets here, build, venv, say, die, has, as_root and in_namespaces. What `./kit test` runs, and what becomes of a test that fails.
# shellcheck shell=sh
: "${here:?}" "${build:?}" "${venv:?}"

# A machine that does other work too lets one test in thousands come too late. More that fail at once are no chance.
again_at_most=10

suite() { # suite NAME RUNNER [PYTEST'S ARGUMENT …]
    suite_name=$1 suite_runner=$2
    shift 2
    rm -rf "$build/suite-$suite_name"
    (cd "$here" && $suite_runner "$venv/bin/python" -m pytest -o cache_dir="$build/suite-$suite_name" "$@")
}

again() { # again STATUS NAME RUNNER [PYTEST'S ARGUMENT …]: what failed in a suite runs once more, alone; it is named in any case
    again_status=$1 suite_name=$2 suite_runner=$3
    shift 3
    # 1: tests failed. All else (a usage error, an interruption, none collected) is not a test's.
    [ "$again_status" -eq 1 ] || return "$again_status"
    suite_cache=$build/suite-$suite_name
    suite_failed=$(failed_tests "$suite_cache")
    suite_count=$(printf '%s\n' "$suite_failed" | grep -c .) || true
    if [ "$suite_count" -eq 0 ] || [ "$suite_count" -gt "$again_at_most" ]; then return 1; fi
    say "$suite_name tests: $suite_count failed; once more, alone:"
    again_status=0
    # The last -n counts: one after the other, with nothing beside them.
    (cd "$here" && $suite_runner "$venv/bin/python" -m pytest -o cache_dir="$suite_cache" "$@" -n 0 --last-failed) || again_status=$?
    [ "$again_status" -eq 0 ] || return "$again_status"
    say "NOT RELIABLE: these failed, and passed when they ran alone; the first run's report above says how:"
    printf '%s\n' "$suite_failed" | sed 's/^/kit:   /' >&2
}

failed_tests() { # failed_tests CACHE: their names, a line each
    if [ -f "$1/v/cache/lastfailed" ]; then
        "$venv/bin/python" -c 'import json, sys; print("\n".join(json.load(open(sys.argv[1]))))' "$1/v/cache/lastfailed"
    fi
}

end_tree() { # end_tree PID: the process and what it started, the root's too
    for child in $(pgrep -P "$1"); do end_tree "$child"; done
    as_root kill "$1" 2>/dev/null || true
}

# They wait more than they work; what is beside them gets the processors when they do not need them.
lab() { "$@" lab in_namespaces -n 3 --dist loadfile tests/lab tests/system; }
unit() { "$@" unit env -n auto --dist loadfile tests/unit tests/contract; }

all_tests() { # the checks and the unit tests, with lab and system tests beside them; what failed again when nothing is beside it
    say "lab and system tests (root, in namespaces of their own, three files at a time), with checks and unit tests beside them"
    lab_said=$build/suite-lab.log lab_result=0 unit_result=0
    lab suite >"$lab_said" 2>&1 &
    lab_runs=$!
    trap 'end_tree "$lab_runs"' EXIT
    trap 'exit 130' INT TERM
    # For this script and what it starts from here on: only what it runs now is in a hurry.
    renice -n 10 -p $$ >/dev/null
    checks
    say "unit and contract tests"
    unit suite || unit_result=$?
    say "lab and system tests, which go on:"
    tail -n +1 -f --pid="$lab_runs" "$lab_said"
    wait "$lab_runs" || lab_result=$?
    trap - EXIT INT TERM
    unit again "$unit_result" || unit_result=$?
    lab again "$lab_result" || lab_result=$?
    [ "$unit_result" -eq 0 ] && [ "$lab_result" -eq 0 ]
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
    say "cargo test"; (cd "$here/firmware/bench/link" && RUSTFLAGS='-D warnings' cargo test --quiet --target-dir "$build/link-test") \
        || die "cargo test failed" 1
    (cd "$here/server/trace-core" && RUSTFLAGS='-D warnings' cargo test --quiet --no-default-features --target-dir "$build/trace-core-test") \
        || die "cargo test failed" 1
}
