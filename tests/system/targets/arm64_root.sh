# arm64_root.sh ROOT NATIVE ARCHITECTURE PACKAGE…: unpacks a Debian of another architecture, in namespaces of its own.
# dpkg is this machine's, also for --root; what it runs there is the other architecture's, emulated.
root=$1 native=$2 architecture=$3
shift 3
export DEBIAN_FRONTEND=noninteractive LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount --make-rprivate /
mkdir -p "$root/dev" "$root/proc"
mount --bind /dev "$root/dev"
mount -t proc proc "$root/proc"
state=$root/var/lib/dpkg

# Accounts, before the package that keeps them is set up: other packages' files belong to them.
cp "$root/usr/share/base-passwd/passwd.master" "$root/etc/passwd"
cp "$root/usr/share/base-passwd/group.master" "$root/etc/group"
mkdir -p "$state/info" "$state/updates" "$state/triggers" "$root/etc/dpkg/dpkg.cfg.d"
: >"$state/status"
printf '%s\n%s\n' "$native" "$architecture" >"$state/arch"
rm -rf "$root"/usr/share/man/* "$root"/usr/share/locale/* "$root"/usr/share/doc/*
dpkg --root="$root" --force-all --path-exclude='/usr/share/man/*' --path-exclude='/usr/share/locale/*' \
    --path-exclude='/usr/share/doc/*' --unpack "$@"

# What the scripts would do now is taken over from an installed root: configuration files and the states of packages are left.
mkdir "$state/aside"
mv "$state"/info/*.postinst "$state/aside/"
dpkg --root="$root" --force-all --configure -a
mv "$state"/aside/* "$state/info/"
rmdir "$state/aside"
rm "$state/arch" # there the architecture is the only one
chroot "$root" ldconfig
chroot "$root" dpkg --audit
umount "$root/proc" "$root/dev"
