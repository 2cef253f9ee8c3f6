# Sourced by kit, which sets here, build, venv, say, die, has and system_python. What kit makes in its own folder of this repository's
# sources and lists: the Python environment, the link emulator and the native pass over captures.
# shellcheck shell=sh
# shellcheck disable=SC2154  # here, build and venv are kit's

locked() { # locked GROUP: its part of requirements/lock.txt, as pip reads it
    awk -v group=" $1 " '/^# in: /{ on = index($0 " ", group) } on' "$here/requirements/lock.txt"
}

python_stamp() { # what .venv is made from, as one word, and where
    cat "$here/requirements/lock.txt" "$here"/*/pyproject.toml "$here"/firmware/*/pyproject.toml | sha256sum | cut -c1-16
    printf '%s\n' "$here"
}

python_environment() { # python_environment runtime|notebook|hardware|provision|dev
    stamp=$venv/.stamp-$1
    now=$(python_stamp)
    if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$now" ] && "$venv/bin/python" -c '' 2>/dev/null; then return; fi
    if [ -f "$stamp" ] || ! "$venv/bin/python" -c 'import pip' 2>/dev/null || ! grep -qsF "$venv" "$venv/bin/pip"; then
        # None yet, or made elsewhere (a moved folder, another Python), or from other lists, of which nothing must stay.
        if [ -e "$venv" ] && [ ! -e "$venv/.made-by-kit" ]; then die "$venv was not made by this script; move it away"; fi
        rm -rf "$venv"
        mkdir "$venv"
        : >"$venv/.made-by-kit"
        say "making .venv with $("$(system_python)" --version)"
        "$(system_python)" -m venv "$venv" || die "could not make .venv"
    fi
    say "installing Python packages: group $1 of requirements/lock.txt (pinned, hashes checked)"
    locked "$1" | "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r /dev/stdin \
        || die "pip could not install the group $1 of requirements/lock.txt"
    list=$1
    shift
    for manifest in "$here"/*/pyproject.toml "$here"/firmware/*/pyproject.toml; do set -- "$@" -e "$(dirname "$manifest")"; done
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-index --no-build-isolation "$@" \
        || die "pip could not install Tandem's own packages"
    # A group holds those that it includes.
    case $list in
        dev) set -- runtime notebook hardware provision dev ;;
        *) set -- runtime "$list" ;;
    esac
    for list in "$@"; do printf '%s' "$now" >"$venv/.stamp-$list"; done
}

validators() { # what published campaigns are validated with, in an environment of its own: build/validators
    now=$(sha256sum "$here/requirements/validators.txt" | cut -c1-64)
    [ "$(cat "$build/validators/list.sha256" 2>/dev/null)" != "$now" ] || return 0
    say "installing the validators of published campaigns from requirements/validators.txt (pinned, hashes checked)"
    rm -rf "$build/validators"
    "$(system_python)" -m venv "$build/validators" || die "could not make build/validators"
    if "$build/validators/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes \
        -r "$here/requirements/validators.txt"; then
        printf '%s' "$now" >"$build/validators/list.sha256"
    else
        say "the tests of published campaigns will skip"
    fi
}

link_sources() { find "$here/firmware/bench/link" -type f \( -name '*.rs' -o -name Cargo.toml \) ! -path '*/target/*' | LC_ALL=C sort; }

link_is_stale() {
    [ "$(cat "$build/bin/.stamp" 2>/dev/null)" != "$(link_digest)" ]
}

link_digest() { link_sources | while IFS= read -r file; do cat "$file"; done | sha256sum | cut -c1-16; }

link_emulator() {
    if [ -x "$build/bin/tandem-link" ] && ! link_is_stale; then return; fi
    say "compiling the link emulator (firmware/bench/link)"
    mkdir -p "$build/bin"
    (cd "$here/firmware/bench/link" && cargo build --release --quiet --target-dir "$build/link") \
        || die "cargo could not compile firmware/bench/link"
    cp "$build/link/release/tandem-link" "$build/bin/.tandem-link.tmp"
    mv "$build/bin/.tandem-link.tmp" "$build/bin/tandem-link"
    link_digest >"$build/bin/.stamp"
}

# Beside the server's modules, so that it is imported from a checkout and goes into the server's wheel (server/setup.py).
trace_core_library=$here/server/src/tandem_server/tandem_trace_core.abi3.so

trace_core_digest() {
    find "$here/server/trace-core" -type f \( -name '*.rs' -o -name Cargo.toml \) ! -path '*/target/*' | LC_ALL=C sort \
        | while IFS= read -r file; do cat "$file"; done | sha256sum | cut -c1-16
}

trace_core_is_stale() {
    [ ! -f "$trace_core_library" ] || [ "$(cat "$build/trace-core/.stamp" 2>/dev/null)" != "$(trace_core_digest)" ]
}

trace_core() {
    trace_core_is_stale || return 0
    say "compiling the native pass over captures (server/trace-core); a minute or two"
    (cd "$here/server/trace-core" && cargo build --release --quiet --target-dir "$build/trace-core") \
        || die "cargo could not compile server/trace-core"
    cp "$build/trace-core/release/libtandem_trace_core.so" "$trace_core_library.tmp"
    mv "$trace_core_library.tmp" "$trace_core_library"
    trace_core_digest >"$build/trace-core/.stamp"
}
