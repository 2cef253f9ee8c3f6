#!/bin/sh
# The first start of a probe, on Raspberry Pi OS bookworm and trixie. It lies on the FAT partition and runs as root, before any network.
#
# A power failure may cut it off anywhere: it is started again at the next start and makes each step again. In the end, when all is on
# the disk, a script without secrets takes its place, which takes away what starts it; then it is gone.
main() {
    set -eu
    umask 022
    boot=$(dirname "$0")
    user=@USER@ name=@NAME@

    base64 -d <<'FILES' | tar -xzpf - -C /
@FILES@
FILES

    # The account, without a password and not locked. What a useradd that was cut off has left is mended first.
    rm -f /etc/passwd.lock /etc/shadow.lock /etc/group.lock /etc/gshadow.lock /etc/subuid.lock /etc/subgid.lock
    pwconv
    grpconv
    id -u "$user" >/dev/null 2>&1 || useradd --create-home --shell /bin/bash "$user"
    usermod --password '*' "$user"
    for group in adm dialout sudo video plugdev gpio i2c spi netdev systemd-journal; do
        if getent group "$group" >/dev/null; then usermod --append --groups "$group" "$user"; fi
    done
    home=$(getent passwd "$user" | cut -d: -f6)
    group=$(id -g "$user")
    install -d -o "$user" -g "$group" -m 0700 "$home" "$home/.ssh"
    printf '%s\n' @KEYS@ >"$home/.ssh/authorized_keys.new"
    chown "$user:$group" "$home/.ssh/authorized_keys.new"
    chmod 0600 "$home/.ssh/authorized_keys.new"
    mv "$home/.ssh/authorized_keys.new" "$home/.ssh/authorized_keys"

    # The machine's own name, found without asking anybody.
    echo "$name" >/etc/hostname
    { sed '/^127\.0\.1\.1[[:space:]]/d' /etc/hosts; printf '127.0.1.1\t%s\n' "$name"; } >/etc/hosts.new
    mv /etc/hosts.new /etc/hosts

    # A stock image keeps its radio off until it has a country.
    if grep -q cfg80211.ieee80211_regdom= "$boot/cmdline.txt"; then
        for file in /var/lib/systemd/rfkill/*:wlan; do
            if [ -e "$file" ]; then echo 0 >"$file"; fi
        done
        rfkill unblock wifi || echo "tandem: rfkill failed; the next start unblocks the radio" >&2
    fi

    cat >"$boot/firstrun.new" <<'LAST'
#!/bin/sh
# The first start is done: nothing starts it again.
set -eu
boot=$(dirname "$0")
if grep -q ' systemd\.run=' "$boot/cmdline.txt"; then
    sed 's/ systemd\.[^ ]*//g' "$boot/cmdline.txt" >"$boot/cmdline.new"
    sync
    mv "$boot/cmdline.new" "$boot/cmdline.txt"
    sync
fi
rm "$boot/firstrun.sh"
sync
LAST
    sync
    mv "$boot/firstrun.new" "$boot/firstrun.sh"
    sync
    exec sh "$boot/firstrun.sh"
}
# Read whole before it begins, since it replaces itself.
main
