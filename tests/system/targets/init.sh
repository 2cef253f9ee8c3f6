#!/bin/busybox sh
# The target's first process: finds the disk, lays the test's own files over it when it starts for the first time (keys, addresses,
# what stands in for modems), and hands over to the system's own init. Nothing of it stays.
b=/bin/busybox
$b mkdir -p /proc /sys /dev /new
$b mount -t proc proc /proc
$b mount -t devtmpfs dev /dev
for module in /modules/*.ko; do $b insmod "$module"; done
$b mount -t ext4 -o noatime /dev/vda /new || { echo "no root"; $b poweroff -f; }
if [ -d /seed ] && [ ! -e /new/etc/seeded ]; then
    $b cp -a /seed/. /new/
    $b chown -R 1000:1000 /new/home/tandem-admin
    : >/new/etc/seeded
fi
$b umount /dev /proc
exec $b switch_root /new /sbin/init
