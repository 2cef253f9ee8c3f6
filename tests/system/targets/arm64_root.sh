# arm64_root.sh ROOT NATIVE ARCHITECTURE KERNEL KEY PACKAGE…: a Debian of another architecture out of packages, in namespaces of its own.
# What is run with --root is this machine's program, what is run by chroot is the other architecture's, emulated.
root=$1 native=$2 architecture=$3 kernel=$4 key=$5
shift 5
export DEBIAN_FRONTEND=noninteractive DEBCONF_NONINTERACTIVE_SEEN=true LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount --make-rprivate /
mkdir -p "$root/dev" "$root/proc" "$root/sys" "$root/run"
mount --bind /dev "$root/dev"
mount -t proc proc "$root/proc"

# Accounts, before the package that keeps them is set up: other packages' files belong to them.
cp "$root/usr/share/base-passwd/passwd.master" "$root/etc/passwd"
cp "$root/usr/share/base-passwd/group.master" "$root/etc/group"
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" # no service is started
chmod 755 "$root/usr/sbin/policy-rc.d"

state=$root/var/lib/dpkg
mkdir -p "$state/info" "$state/updates" "$state/triggers"
: >"$state/status"
printf '%s\n%s\n' "$native" "$architecture" >"$state/arch"
mkdir -p "$root/etc/dpkg/dpkg.cfg.d"
printf 'path-exclude=/usr/share/%s/*\n' man locale doc >"$root/etc/dpkg/dpkg.cfg.d/small"
echo force-unsafe-io >>"$root/etc/dpkg/dpkg.cfg.d/small"

dpkg --root="$root" --force-all --unpack "$@"
rm "$state/arch" # there the architecture is the only one
chroot "$root" dpkg --configure --force-confnew -a
chroot "$root" dpkg --audit
chroot "$root" depmod "$kernel"

install -D -m 0644 "$key" "$root/etc/apt/trusted.gpg.d/tandem-tests.asc"
chroot "$root" useradd -m -s /bin/bash -G sudo -p '*' tandem-admin # by key; "*" fits no password and does not lock the account
printf 'tandem-admin ALL=(ALL) NOPASSWD: ALL\n' >"$root/etc/sudoers.d/first-boot"
rm -f "$root"/etc/ssh/ssh_host_* "$root/etc/apt/sources.list" "$root/etc/resolv.conf" "$root/usr/sbin/policy-rc.d"
rm -rf "$root"/usr/share/man/* "$root"/usr/share/locale/* "$root"/usr/share/doc/*
: >"$root/etc/machine-id"
touch "$root/etc/.updated" "$root/var/.updated"
umount "$root/proc" "$root/dev"
