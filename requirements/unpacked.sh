# Sourced by kit, which sets here, build, venv, say, die, has, want and as_root. Programs of the distribution that this kit runs but does not
# install: their packages are unpacked into build/, no script of theirs runs and no service starts. Also the tests' virtual machine.
#
# To add one: a function that finds the program, or prints nothing; one that unpacks it when it is not found; their lines in programs_of_tests (packages.sh) and find_programs.
# shellcheck shell=sh
# shellcheck disable=SC2154  # here, build and venv are kit's

lists_are_new=''  # yes once apt's lists were fetched again

first_program() { # first_program CANDIDATE…: the first that can be run, or nothing; one without a slash is looked for in PATH
    for candidate in "$@"; do
        case $candidate in */*) ;; ?*) candidate=$(command -v "$candidate" 2>/dev/null || true) ;; esac
        if [ -n "$candidate" ] && [ -x "$candidate" ]; then
            printf '%s\n' "$candidate"
            return
        fi
    done
}

libraries_missing() { # libraries_missing PACKAGE…: packages of libraries that apt would install with these
    apt-get install -s --no-install-recommends "$@" 2>/dev/null | sed -n 's/^Inst \(lib[^ ]*\) .*/\1/p'
}

download_packages() { # download_packages FOLDER PACKAGE…: these and the libraries that this system lacks
    (
        cd "$1" && shift || exit 1
        # shellcheck disable=SC2046  # a list of package names, split on purpose
        apt-get download -qq $({ printf '%s\n' "$@"; libraries_missing "$@"; } | sort -u) >/dev/null 2>&1
    )
}

unpack_packages() { # unpack_packages FOLDER PACKAGE…: into FOLDER/root, with the libraries that this system lacks; 1 when they are not to be had
    folder=$1; shift
    say "taking $* out of the distribution's packages (nothing is installed, no service starts)"
    rm -rf "$folder"
    mkdir -p "$folder/deb"
    if ! download_packages "$folder/deb" "$@"; then
        # The lists may be absent or old.
        if [ -n "$lists_are_new" ] || ! { lists_are_new=yes; as_root apt-get update -qq; } || ! download_packages "$folder/deb" "$@"; then
            say "not to be had: $*"
            rm -rf "$folder"
            return 1
        fi
    fi
    for deb in "$folder"/deb/*.deb; do
        dpkg -x "$deb" "$folder/root" || die "dpkg could not unpack $deb"
    done
    rm -rf "$folder/deb"
}

keep_unpacked() { # keep_unpacked MADE NAME: in one step, in place of an older one
    rm -rf "${build:?}/$2"
    mv "$1" "$build/$2"
    rm -rf "$build/$2.tmp"
}

# --- InfluxDB: the kit's own database --------------------------------------------------------------------------------

influxd() { first_program "${TANDEM_INFLUXD:-}" "$build/influxdb/usr/bin/influxd" influxd; }

influx_database() {
    [ -z "$(influxd)" ] || return 0
    unpack_packages "$build/influxdb.tmp" influxdb || die "set TANDEM_INFLUXD to an influxd 1.x binary"
    keep_unpacked "$build/influxdb.tmp/root" influxdb
}

# --- VictoriaMetrics: for the tests of it as a store -----------------------------------------------------------------

victoria_metrics_program() { first_program "${TANDEM_VICTORIAMETRICS:-}" "$build/victoriametrics/victoria-metrics" victoria-metrics; }

victoria_metrics() {
    [ -z "$(victoria_metrics_program)" ] && has apt-get && has dpkg || return 0
    unpack_packages "$build/victoriametrics.tmp" victoria-metrics || { say "the tests of VictoriaMetrics will skip"; return 0; }
    beside_its_libraries "$build/victoriametrics.tmp" usr/bin/victoria-metrics
    keep_unpacked "$build/victoriametrics.tmp" victoriametrics
}

# --- ModemManager: for its lab test; a machine that cannot have it skips that test and says so -----------------------

modem_manager() { first_program "${TANDEM_MODEMMANAGER:-}" "$build/modemmanager/usr/sbin/ModemManager"; }

real_modem_manager() {
    [ -z "$(modem_manager)" ] && has apt-get && has dpkg || return 0
    unpack_packages "$build/modemmanager.tmp" modemmanager || {
        say "set TANDEM_MODEMMANAGER to a ModemManager that has its test interface"
        return 0
    }
    keep_unpacked "$build/modemmanager.tmp/root" modemmanager
}

# --- gpsd: for the tests that replay a drive; without it they skip ---------------------------------------------------

gpsd_program() { first_program "${TANDEM_GPSD:-}" "$build/gpsd/gpsd" gpsd /usr/sbin/gpsd; }

gps_daemon() {
    [ -z "$(gpsd_program)" ] && has apt-get && has dpkg || return 0
    unpack_packages "$build/gpsd.tmp" gpsd || { say "the tests of gpsd will skip"; return 0; }
    beside_its_libraries "$build/gpsd.tmp" usr/sbin/gpsd
    keep_unpacked "$build/gpsd.tmp" gpsd
}

# --- WireGuard in user space: for the test of the tunnel; without it that one skips -----------------------------------

wireguard_root() { # the folder that has usr/bin/wg and usr/bin/wireguard-go, or nothing
    for candidate in "${TANDEM_WIREGUARD:-}" "$build/wireguard"; do
        if [ -n "$candidate" ] && [ -x "$candidate/usr/bin/wg" ] && [ -x "$candidate/usr/bin/wireguard-go" ]; then
            printf '%s\n' "$candidate"
            return
        fi
    done
}

wireguard_in_user_space() {
    [ -z "$(wireguard_root)" ] && has apt-get && has dpkg || return 0
    unpack_packages "$build/wireguard.tmp" wireguard-go wireguard-tools || { say "the test of the tunnel will skip"; return 0; }
    keep_unpacked "$build/wireguard.tmp/root" wireguard
}

# --- the coupled congestion controllers: for their tests; without clang, libbpf-dev or bpftool they skip -----------------

congestion_packages() {
    has clang || want clang "builds the congestion controllers (server/congestion)"
    has make || want make "builds them"
    [ -e /usr/include/bpf/bpf_helpers.h ] || want libbpf-dev "their headers"
    # Ubuntu has it in the packages of its kernels, of which the running one may have none.
    if ! has bpftool && has apt-cache && apt-cache show bpftool >/dev/null 2>&1; then want bpftool "loads them"; fi
}

congestion_object() {
    has clang && has make || return 0
    make -s -C "$here/server/congestion" OUT="$build/congestion" || die "server/congestion could not be built; the lines above say why"
}

# --- VLC: for the tests in which it plays; without it they skip ------------------------------------------------------

vlc_program() { first_program "${TANDEM_VLC:-}" "$build/vlc/vlc" vlc; }

vlc_player() {
    [ -z "$(vlc_program)" ] && has apt-get && has dpkg || return 0
    unpack_packages "$build/vlc.tmp" vlc-bin vlc-plugin-base || { say "the tests of VLC will skip"; return 0; }
    beside_its_libraries "$build/vlc.tmp" usr/bin/vlc
    keep_unpacked "$build/vlc.tmp" vlc
}

# --- cloud-init and netplan: for the tests of images, which ask them what they make of a card's files; without them they skip --

cloud_init_root() { # the folder that has usr/lib/python3/dist-packages/cloudinit, or nothing
    for candidate in "${TANDEM_CLOUD_INIT:-}" "$build/cloud-init"; do
        if [ -n "$candidate" ] && [ -d "$candidate/usr/lib/python3/dist-packages/cloudinit" ]; then
            printf '%s\n' "$candidate"
            return
        fi
    done
}

modules_missing() { # modules_missing PACKAGE: packages of Python modules that apt would install with it
    apt-get install -s --no-install-recommends "$1" 2>/dev/null | sed -n 's/^Inst \(python3-[^ ]*\) .*/\1/p'
}

cloud_init() {
    [ -z "$(cloud_init_root)" ] && has apt-get && has dpkg || return 0
    # Without lists nobody could say which modules it needs.
    if ! apt-cache show cloud-init >/dev/null 2>&1; then as_root apt-get update -qq || return 0; fi
    # shellcheck disable=SC2046  # a list of package names, split on purpose
    unpack_packages "$build/cloud-init.tmp" cloud-init netplan.io $(modules_missing cloud-init) || {
        say "the tests of cloud-init's files will skip"
        return 0
    }
    keep_unpacked "$build/cloud-init.tmp/root" cloud-init
}

beside_its_libraries() { # beside_its_libraries FOLDER PROGRAM: FOLDER/NAME, which starts FOLDER/root/PROGRAM with the libraries unpacked beside it
    cat >"$1/${2##*/}" <<WRAPPER
#!/bin/sh
root=\$(CDPATH='' cd -- "\$(dirname -- "\$0")" && pwd)/root
# The folder is named after the architecture.
for folder in "\$root"/usr/lib/*-linux-gnu* "\$root"/lib/*-linux-gnu*; do
    [ -d "\$folder" ] || continue
    LD_LIBRARY_PATH=\$folder\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}
done
export LD_LIBRARY_PATH
exec "\$root/$2" "\$@"
WRAPPER
    chmod +x "$1/${2##*/}"
}

# --- the virtual machine: for the system tests that need another kernel, the distribution's own ----------------------

machine_builder() { PATH=$PATH:/usr/sbin:/sbin "$(system_python)" "$here/tests/system/vm/build.py" "$@"; }

virtual_machine() {
    status=0
    machine_builder --known || status=$?
    case $status in
        0) ;;
        4) say "no virtual machine (the line above says why): its tests are skipped"; return 0 ;;
        *) die "the virtual machine's builder does not run" ;;
    esac
    has qemu-system-x86_64 || want qemu-system-x86 "runs the tests' virtual machine, without KVM"
    has mkfs.ext4 || want e2fsprogs "makes its disk"
    [ "$(id -u)" -eq 0 ] || has fakeroot || want fakeroot "makes its disk as if by root"
    install_wanted
    if machine_builder "$build/vm" >/dev/null 2>&1; then return; fi
    # The lists may be absent or old.
    as_root apt-get update -qq || die "apt-get update failed; is there a network?"
    machine_builder "$build/vm" >/dev/null || die "the tests' virtual machine could not be made; the line above says why"
}

# --- targets: bare Debians that the playbooks are tried on -----------------------------------------------------------

provisioning_targets() {
    if ! machine_builder --known >/dev/null 2>&1 || ! grep -qs '^ID=debian' /etc/os-release; then
        say "no targets for playbooks: they are made on Debian on x86_64; their tests are skipped"
        return 0
    fi
    has mmdebstrap || want mmdebstrap "installs the Debians that playbooks are tried on, in build/targets"
    has systemd-nspawn || want systemd-container "runs one of them, as a server"
    has qemu-system-x86_64 || want qemu-system-x86 "runs the other, as a kit, without KVM"
    has qemu-img || want qemu-utils "its disk"
    has gpg || want gpg "signs the tests' package archive"
    has ssh || want openssh-client "Ansible's way to them"
    install_wanted
    targets_maker="$venv/bin/python $here/tests/system/targets/make.py $build/targets"
    # shellcheck disable=SC2086  # words, split on purpose
    if as_root env PATH="$PATH:/usr/sbin:/sbin" PYTHONDONTWRITEBYTECODE=1 $targets_maker >/dev/null 2>&1; then return; fi
    # The lists may be absent or old.
    as_root apt-get update -qq || die "apt-get update failed; is there a network?"
    # shellcheck disable=SC2086
    as_root env PATH="$PATH:/usr/sbin:/sbin" PYTHONDONTWRITEBYTECODE=1 $targets_maker >/dev/null || die "the targets for playbooks could not be made; the line above says why"
}

# --- Grafana's types: for a test of the boards -----------------------------------------------------------------------

grafana_types() { # npm's packages of dashboards/types; without npm or a network the test that needs them skips, and says so
    if cmp -s "$here/dashboards/types/package-lock.json" "$build/types/package-lock.json" && [ -d "$build/types/node_modules" ]; then return; fi
    if ! has npm; then
        say "there is no npm here: the test that holds the boards against Grafana's types skips (package npm, if you want it)"
        return
    fi
    say "taking Grafana's types from npm into build/types (pinned, hashes checked, no script runs)"
    rm -rf "$build/types.tmp"
    mkdir -p "$build/types.tmp"
    cp "$here/dashboards/types/package.json" "$here/dashboards/types/package-lock.json" "$build/types.tmp"
    if (cd "$build/types.tmp" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null); then
        keep_unpacked "$build/types.tmp" types
    else
        say "not to be had: the test that holds the boards against Grafana's types skips"
        rm -rf "$build/types.tmp"
    fi
}

# --- what kit starts ---------------------------------------------------------------------------------------------------

find_programs() { # sets and exports them, empty where there is none, and PATH with .venv's programs
    TANDEM_LINK=$build/bin/tandem-link
    TANDEM_INFLUXD=$(influxd)
    TANDEM_VICTORIAMETRICS=$(victoria_metrics_program)
    TANDEM_MODEMMANAGER=$(modem_manager)
    TANDEM_GPSD=$(gpsd_program | grep . || echo gpsd)
    TANDEM_CHROMIUM=$(browser_program)
    TANDEM_VLC=$(vlc_program)
    TANDEM_CLOUD_INIT=$(cloud_init_root)
    TANDEM_WIREGUARD=$(wireguard_root)
    TANDEM_CONGESTION=$build/congestion/coupled.bpf.o
    PATH=$venv/bin:$PATH:/usr/sbin:/sbin
    export PATH TANDEM_LINK TANDEM_INFLUXD TANDEM_VICTORIAMETRICS TANDEM_MODEMMANAGER TANDEM_GPSD TANDEM_CHROMIUM TANDEM_VLC \
        TANDEM_CLOUD_INIT TANDEM_WIREGUARD TANDEM_CONGESTION
}
