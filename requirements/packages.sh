# Sourced by kit, which sets here, build, say, die and has. Which packages of the distribution are needed for what: each is named with its
# reason before it is installed.
# shellcheck shell=sh
# shellcheck disable=SC2154  # here and build are kit's

wanted=''
want() { # want PACKAGE REASON…
    package=$1; shift
    say "missing: $package ($*)"
    wanted="$wanted $package"
}

install_wanted() {
    [ -n "$wanted" ] || return 0
    has apt-get || die "needs$wanted; this system has no apt-get: install them by hand and start again"
    say "installing with apt-get:$wanted"
    # shellcheck disable=SC2086  # a list of package names, split on purpose
    if ! as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $wanted >/dev/null 2>&1; then
        # The lists may be absent or old.
        as_root apt-get update -qq || die "apt-get update failed; is there a network?"
        # shellcheck disable=SC2086
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $wanted >/dev/null \
            || die "apt-get could not install$wanted"
    fi
    wanted=''
}

system_python() {
    for candidate in /usr/bin/python3 python3; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            printf '%s\n' "$candidate"
            return
        fi
    done
}

python_with_environments() {
    [ -n "$(system_python)" ] || want python3 "Python 3.11 or later"
    "$(system_python | grep . || echo false)" -c 'import ensurepip' 2>/dev/null || want python3-venv "Python environments"
}

rust_is_new_enough() {
    has cargo && has rustc || return 1
    minor=$(rustc --version 2>/dev/null | sed -n 's/^rustc 1\.\([0-9]*\)\..*/\1/p')
    [ "${minor:-0}" -ge 75 ]
}

rust() { # rust WHAT: a compiler, for it
    if ! rust_is_new_enough; then
        # Bookworm's own Rust is too old for the crates' index; the browser team's packages carry a new one.
        if grep -qs 'VERSION_CODENAME=bookworm' /etc/os-release; then
            want rustc-web "compiles $1"
            want cargo-web "compiles $1"
        else
            want rustc "compiles $1"
            want cargo "compiles $1"
        fi
    fi
    has cc || { want gcc "links $1"; want libc6-dev "links $1"; }
}

system_packages() { # system_packages runtime|analysis|notebook|dev
    has ip || want iproute2 "ip: namespaces, routes, MPTCP endpoints"
    has nft || want nftables "nft: the operators' NAT"
    has tcpdump || want tcpdump "captures of packet headers"
    has dnsmasq || want dnsmasq-base "the operators' resolvers; starts no service"
    { has setpriv && has unshare && has nsenter; } || want util-linux "unshare, nsenter, setpriv"
    python_with_environments
    if [ "$1" = dev ] || [ ! -x "$build/bin/tandem-link" ] || link_is_stale; then rust "the link emulator"
    elif [ "$1" != runtime ] && trace_core_is_stale; then rust "the native pass over captures"
    fi
    if [ -z "$(influxd)" ] && has apt-get; then
        has dpkg || die "dpkg is missing; set TANDEM_INFLUXD to an influxd 1.x binary"
    fi
    install_wanted
}

browser_program() { # the Chromium to use, or nothing
    for candidate in "${TANDEM_CHROMIUM:-}" chromium-headless-shell chromium chromium-browser google-chrome-stable google-chrome; do
        if [ -n "$candidate" ] && found=$(command -v "$candidate" 2>/dev/null); then
            # Ubuntu's is a snap behind a script, whose confinement keeps it from our pipes.
            case $(readlink -f "$found") in */snap*) continue ;; esac
            if ! grep -qs '/snap/bin' "$found"; then
                printf '%s\n' "$found"
                return
            fi
        fi
    done
}

browser() { # for the tests of page loads; without it they skip
    [ -z "$(browser_program)" ] && has apt-cache || return 0
    if ! apt-cache show chromium-headless-shell >/dev/null 2>&1; then
        as_root apt-get update -qq || return 0
    fi
    if apt-cache show chromium-headless-shell >/dev/null 2>&1; then
        want chromium-headless-shell "loads pages, in tests; it has no display and starts no service"
    else
        say "there is no package chromium-headless-shell here (Ubuntu has Chromium as a snap only): the tests that need a browser skip"
        say "to run them, let TANDEM_CHROMIUM name a Chromium that is no snap"
    fi
}

packages_of_tests() { # packages_of_tests test|lab|all: what only tests need
    has shellcheck || want shellcheck "checks this script"
    has dbus-daemon || want dbus-daemon "a bus of their own for the tests with ModemManager"
    { has mkfs.ext4 && has e2fsck && has debugfs; } || want e2fsprogs "makes the disks whose power the tests cut"
    has mcopy || want mtools "images for probes: their boot partition"
    has certutil || want libnss3-tools "a browser's certificates, in a test"
    has mkfs.vfat || want dosfstools "images for probes: the tests' own"
    has sfdisk || want fdisk "images for probes: the tests' own"
    has make || want make "checks hardware/"
    browser
    [ "$1" != test ] || return 0
    congestion_packages
    has tshark || want tshark "what the native pass over captures is held against; starts no service"
    has ffmpeg || want ffmpeg "makes DASH content of a video, in a test"
}

programs_of_tests() { # programs_of_tests test|lab|all: unpacked into build/; a test whose program is not to be had skips, and says so
    victoria_metrics
    real_modem_manager
    gps_daemon
    [ "$1" != test ] || return 0
    congestion_object
    wireguard_in_user_space
    vlc_player
    cloud_init
    [ "$1" != lab ] || return 0
    grafana_types
    validators
    virtual_machine
    provisioning_targets
}

hardware_packages() { # what draws hardware/ (its Makefile)
    has openscad || want openscad "the case: pictures and what is printed"
    has xvfb-run || { want xvfb "a screen for the case's pictures"; want xauth "that screen"; want libgl1-mesa-dri "draws on it"; }
    has dot || want graphviz "wiring"
}
