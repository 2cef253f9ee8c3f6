#!/bin/busybox sh
# The first process: finds the root, mounts what the host shares at the host's own paths, runs one command, switches off.
# The command's exit status and output lie in the shared folder; what the kernel says is on the console.
b=/bin/busybox
if [ ! -e /tandem-root ]; then
    $b mkdir -p /proc /sys /dev /new
    $b mount -t proc proc /proc
    $b mount -t devtmpfs dev /dev
    for module in /modules/*.ko; do $b insmod "$module"; done
    $b mount -t ext4 -o noatime /dev/vda /new || { echo "no root"; $b poweroff -f; }
    $b cp /init /new/vm-init
    : >/new/tandem-root
    $b umount /dev /proc
    exec $b switch_root /new /bin/sh /vm-init
fi
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb LANG=C.UTF-8
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts -o mode=620,ptmxmode=666 pts /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t tmpfs -o mode=755,size=70% run /run
mount -t tmpfs -o mode=1777 tmp /tmp
mkdir -p /run/lock /run/vm
ln -sf /proc/self/fd /dev/fd
ip link set lo up
echo vm >/proc/sys/kernel/hostname
mount_9p() { # mount_9p TAG FOLDER OPTIONS
    mkdir -p "$2" && mount -t 9p -o "trans=virtio,version=9p2000.L,msize=262144,$3" "$1" "$2"
}
mount_9p share /run/vm cache=none
# What the host lends is read-only; what is written over it (Python's byte code) lies in memory.
while read -r tag folder; do
    mount_9p "$tag" "/run/lent/$tag" ro,cache=loose
    mkdir -p "$folder" "/run/over/$tag/upper" "/run/over/$tag/work"
    mount -t overlay -o "lowerdir=/run/lent/$tag,upperdir=/run/over/$tag/upper,workdir=/run/over/$tag/work" overlay "$folder"
done </run/vm/shares
cut -d ' ' -f 1 /proc/uptime >/run/vm/booted
cd /run/vm || exit 1
setsid --wait sh /run/vm/command </dev/null >/run/vm/stdout 2>/run/vm/stderr
echo $? >/run/vm/exit.tmp
mv /run/vm/exit.tmp /run/vm/exit
exec $b poweroff -f
