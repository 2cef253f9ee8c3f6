#!/bin/bash
# The paper's way of polling: a plain Bash loop that asks both modems once a second with AT commands, one command at a time,
# and cuts the answers up with awk and grep. A yardstick for the collector's poller; the kit itself does not use it.
#
# usage: poll.sh PORT_A PORT_B CSV [POLLS]
# CSV: time in ns, path, RSSI in dBm, RSRP in dBm, eNodeB, sector. Ends after POLLS polls of each modem (default: never).
set -u
if [ $# -lt 3 ]; then
    echo "usage: poll.sh PORT_A PORT_B CSV [POLLS]" >&2
    exit 2
fi
csv=$3
polls=${4:-0}

stty -F "$1" 115200 raw -echo || exit 3
stty -F "$2" 115200 raw -echo || exit 3
exec 3<>"$1" 4<>"$2"

# ask FD COMMAND: the answer's lines, up to its final result or a second of silence, into $answer
ask() {
    local line
    answer=""
    echo -ne "$2\r" >&"$1"
    while read -r -t 1 line <&"$1"; do
        line=${line%$'\r'}
        answer="$answer$line"$'\n'
        case $line in
            OK | ERROR | "+CME ERROR"* | "COMMAND NOT SUPPORT") return 0 ;;
        esac
    done
    return 1
}

# poll FD PATH: one row, and a word on standard output when the level changed by 6 dB or more
poll() {
    local now rssi rsrp cell enb="" sector="" last
    now=$(date +%s%N)
    ask "$1" "AT+CSQ"
    rssi=$(echo "$answer" | grep '^+CSQ:' | awk -F'[:, ]+' '$2 != 99 { print 2 * $2 - 113 }')
    ask "$1" "AT+CESQ"
    rsrp=$(echo "$answer" | grep '^+CESQ:' | awk -F'[:, ]+' '$7 != 255 { print $7 - 141 }')
    ask "$1" "AT+CEREG?"
    cell=$(echo "$answer" | grep '^+CEREG:' | tail -n 1 | awk -F'"' '{ print $4 }')
    if [ -n "$cell" ]; then
        enb=$((16#$cell >> 8))
        sector=$((16#$cell & 255))
    fi
    echo "$now,$2,$rssi,$rsrp,$enb,$sector" >>"$csv"
    last=${previous[$1]:-}
    if [ -n "$last" ] && [ -n "$rsrp" ]; then
        if [ $((rsrp - last)) -ge 6 ] || [ $((last - rsrp)) -ge 6 ]; then
            echo "mobility start: $2 from $last to $rsrp dBm"
        fi
    fi
    previous[$1]=$rsrp
}

declare -a previous
for fd in 3 4; do
    ask $fd "ATE0"
    ask $fd "AT+CEREG=2"
done
count=0
while [ "$polls" -eq 0 ] || [ "$count" -lt "$polls" ]; do
    poll 3 a
    poll 4 b
    count=$((count + 1))
    sleep 1
done
