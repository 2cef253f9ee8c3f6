# Sourced by kit, which sets here, build, say, die, has, want and as_root. Programs of the distribution that this kit runs but does not
# install: their packages are unpacked into build/, no script of theirs runs and no service starts. Also the tests' virtual machine.
#
# To add one: a function that finds the program, or prints nothing; one that unpacks it when it is not found; their lines in kit's setup.
# shellcheck shell=sh
# shellcheck disable=SC2154  # here and build are kit's

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

libraries_missing() { # libraries_missing DEB…: packages of libraries that these need and this system does not have
    for deb in "$@"; do dpkg-deb -f "$deb" Depends; done | tr ',' '\n' | sed 's/|.*//; s/(.*//; s/:.*//; s/ //g' | sort -u |
        while IFS= read -r name; do
            case $name in lib*) ;; *) continue ;; esac
            dpkg-query -W -f='${Status}' "$name" 2>/dev/null | grep -q 'ok installed' || printf '%s\n' "$name"
        done
}

download_package() { # download_package FOLDER PACKAGE: once more with new lists when they are absent or old
    if (cd "$1" && apt-get download -qq "$2" >/dev/null 2>&1); then return; fi
    if [ -z "$lists_are_new" ]; then
        lists_are_new=yes
        as_root apt-get update -qq || return 1
        (cd "$1" && apt-get download -qq "$2" >/dev/null 2>&1) && return
    fi
    return 1
}

unpack_packages() { # unpack_packages FOLDER PACKAGE…: these and the libraries this system lacks, into FOLDER/root; 1 when one is not to be had
    folder=$1; shift
    next=$*
    say "taking $next out of the distribution's packages (nothing is installed, no service starts)"
    rm -rf "$folder"
    mkdir -p "$folder/deb"
    while [ -n "$next" ]; do
        for package in $next; do
            if ! download_package "$folder/deb" "$package"; then
                say "the package $package is not to be had"
                rm -rf "$folder"
                return 1
            fi
        done
        next=''
        for package in $(libraries_missing "$folder"/deb/*.deb); do
            [ -n "$(find "$folder/deb" -name "${package}_*.deb")" ] || next="$next $package"
        done
    done
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

# --- VLC: for the tests in which it plays; without it they skip ------------------------------------------------------

vlc_program() { first_program "${TANDEM_VLC:-}" "$build/vlc/vlc" vlc; }

vlc_player() {
    [ -z "$(vlc_program)" ] && has apt-get && has dpkg || return 0
    unpack_packages "$build/vlc.tmp" vlc-bin vlc-plugin-base || { say "the tests of VLC will skip"; return 0; }
    beside_its_libraries "$build/vlc.tmp" usr/bin/vlc
    keep_unpacked "$build/vlc.tmp" vlc
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
