"""The probe's own state: the collector, the machine, its storage and software, its modems, and what its paths carried."""

from __future__ import annotations

from tandem.schema.metrics.table import Field, Measurement

MODEM_STATES = ("usable", "recovering", "lost", "unknown")
"""``state`` of a modem_health record: it answers / the recovery ladder is at work / it has been silent or has repeated itself for
5 seconds or more, and nobody is at work / not polled yet."""

HEALTH = Measurement(
    "health",
    "the collector's own state and its machine's, every ten seconds; of the machine most fields once a minute",
    (),
    (
        Field("cpu_seconds", "float", "s", "user and system time of the collector and its children so far", 0),
        Field("rss_bytes", "int", "B", "resident memory of the collector", 0),
        Field("spool_records", "int", "", "records not yet acknowledged", 0),
        Field("spool_bytes", "int", "B", "size of the spool on disk", 0),
        Field("spool_oldest_s", "float", "s", "age of the oldest record not yet acknowledged", 0),
        Field("spool_limit_bytes", "int", "B", "[spool] limit_bytes: above it the oldest records are dropped", 1),
        Field("captures_bytes", "int", "B", "captures on disk", 0),
        Field("traces_waiting", "int", "", "files of runs that the server has not", 0),
        Field("traces_waiting_bytes", "int", "B", "files of runs that the server has not", 0),
        Field("mobile", "bool", "", "mobility state"),
        Field(
            "speed_class",
            "str",
            "",
            "of the movement so far: low (on foot) or high, by good fixes; absent while not known",
        ),
        Field("clock_synchronised", "bool", "", "records get a time now"),
        Field(
            "disk_free_bytes", "int", "B", "statvfs f_bavail of the state folder's file system: for ordinary users", 0
        ),
        Field("disk_used_bytes", "int", "B", "statvfs f_blocks - f_bfree of it", 0),
        Field("disk_free_inodes", "int", "", "statvfs f_favail; absent where the file system has no fixed number", 0),
        Field("disk_used_inodes", "int", "", "statvfs f_files - f_ffree; likewise", 0),
        Field("memory_available_bytes", "int", "B", "MemAvailable of /proc/meminfo", 0),
        Field("load_1min", "float", "", "of /proc/loadavg: mean of runnable and waiting threads", 0),
        Field("uptime_s", "float", "s", "of the machine: /proc/uptime", 0),
        Field("boot_count", "int", "", "boots of this machine in which a collector ran, this one included", 1),
        Field("processor_temperature_degc", "float", "degC", "the kernel's thermal zone of the processor", -55, 200),
        Field(
            "undervoltage",
            "bool",
            "",
            "the supply is too low, now or since the record before: bit 0, or rpi_volt's alarm",
        ),
        Field("undervoltage_seen", "int", "", "undervoltage as a number, 1 or 0: what an alarm adds up", 0, 1),
        Field("frequency_capped", "bool", "", "the firmware caps the processor's frequency now: bit 1"),
        Field("throttled", "bool", "", "the firmware slows the processor down now: bit 2"),
        Field("soft_temperature_limit", "bool", "", "the soft temperature limit is reached now: bit 3"),
        Field("undervoltage_since_boot", "bool", "", "bit 16, or seen by this collector; vcgencmd get_throttled"),
        Field("frequency_capped_since_boot", "bool", "", "bit 17, or seen by this collector"),
        Field("throttled_since_boot", "bool", "", "bit 18, or seen by this collector"),
        Field("soft_temperature_limit_since_boot", "bool", "", "bit 19, or seen by this collector"),
    ),
)
"""Bits: of a Raspberry Pi's firmware (its documentation of ``vcgencmd get_throttled``); absent on other machines."""

TEMPERATURE = Measurement(
    "temperature",
    "one sensor of the machine, once a minute",
    ("sensor",),
    (
        Field(
            "temperature_degc",
            "float",
            "degC",
            "thermal zones and hwmon of the kernel, whose names are the tag",
            -55,
            200,
        ),
    ),
)

CARD = Measurement(
    "card",
    "what the state folder is on, and each SD card and eMMC, once an hour; wear only where the card tells",
    ("device",),
    (
        Field("kind", "str", "", "sd, emmc, nvme, disk or virtual"),
        Field("name", "str", "", "the product's name: of the CID register, or the model"),
        Field("made", "str", "", "month and year of manufacture, of the CID register"),
        Field("size_bytes", "int", "B", "capacity", 0),
        Field(
            "erase_bytes", "int", "B", "preferred_erase_size: an SD card's allocation unit, an eMMC's erase group", 0
        ),
        Field("read_bytes", "int", "B", "since the boot, of the kernel's block statistics", 0),
        Field("written_bytes", "int", "B", "since the boot, likewise", 0),
        Field(
            "life_time_a_code",
            "int",
            "",
            "JESD84-B51 DEVICE_LIFE_TIME_EST_TYP_A, as the kernel read it at boot",
            0,
            255,
        ),
        Field("life_time_b_code", "int", "", "DEVICE_LIFE_TIME_EST_TYP_B, likewise", 0, 255),
        Field("life_used_a_percent", "int", "%", "upper end of the tenth that code a tells; 110: exceeded", 10, 110),
        Field("life_used_b_percent", "int", "%", "of code b", 10, 110),
        Field(
            "pre_eol_code",
            "int",
            "",
            "JESD84-B51 PRE_EOL_INFO: 1 normal, 2 warning (80 % of reserved blocks used), 3 urgent",
            0,
            255,
        ),
    ),
)

SOFTWARE = Measurement(
    "software",
    "what runs, at the start and once an hour",
    (),
    (
        Field("tandem", "str", "", "version of the collector"),
        Field("kernel", "str", "", "uname -r"),
        Field("python", "str", "", "version of the interpreter"),
        Field("machine", "str", "", "the board as its device tree names it, else the processor's architecture"),
        Field("system", "str", "", "PRETTY_NAME of /etc/os-release"),
        Field("firmware", "str", "", "a Raspberry Pi's: date of the VideoCore firmware"),
        Field("bootloader", "str", "", "a Raspberry Pi's: version of the boot loader, of its device tree"),
    ),
)

MODEM_HEALTH = Measurement(
    "modem_health",
    "what became of one modem's polls, once a minute",
    ("path", "operator", "driver"),
    (
        Field("state", "str", "", "one of MODEM_STATES"),
        Field("state_code", "int", "", "its place in that list: an alarm compares numbers", 0, len(MODEM_STATES) - 1),
        Field("state_since_s", "float", "s", "how long it has been in that state", 0),
        Field("sickness", "str", "", "why it is not usable: silent or refusing"),
        Field("polls_ok", "int", "", "that were answered since the record before", 0),
        Field("polls_failed", "int", "", "that were not", 0),
        Field("period_s", "float", "s", "since the record before, or since the collector's start", 0),
        Field("recovery_steps", "int", "", "of the recovery ladder since the collector's start", 0),
        Field("recovery_step", "str", "", "the last of them"),
        Field("recoveries", "int", "", "how often it came back since the collector's start", 0),
    ),
)

USAGE = Measurement(
    "usage",
    "bytes that crossed one path's interface since the collector started, every ten seconds",
    ("path", "operator"),
    (
        Field("received_bytes", "int", "B", "the interface's counter", 0),
        Field("sent_bytes", "int", "B", "the interface's counter", 0),
        Field("control_bytes", "int", "B", "of these, TCP payload to and from the gateway: records, manifests, TLS", 0),
        Field("upload_bytes", "int", "B", "of these, TCP payload to and from the gateway: files of runs, TLS", 0),
    ),
)

SIM_USAGE = Measurement(
    "sim_usage",
    "what a SIM carried in this period of its plan, and what it will have at the end, once a minute while the time is known",
    ("path", "operator"),
    (
        Field(
            "used_bytes",
            "int",
            "B",
            "both ways since the plan's reset day (without a plan the 1st of the month), 00:00 UTC",
            0,
        ),
        Field("used_today_bytes", "int", "B", "of these, this day (UTC)", 0),
        Field("day_limit_bytes", "int", "B", "above it the collector begins no run by itself this day (UTC)", 0),
        Field("whole_period", "bool", "", "false: the account begins after the reset, used_bytes is a part"),
        Field("plan_bytes", "int", "B", "[path.plan] bytes", 1),
        Field("left_bytes", "int", "B", "of the plan", 0),
        Field("daily_bytes", "float", "B", "a day, as expected from the days before (app/daemon/sim_plan.py)", 0),
        Field("basis_days", "int", "", "how many whole days daily_bytes is from", 0, 28),
        Field("expected_bytes", "int", "B", "used at the next reset, as forecast", 0),
        Field("reset_in_s", "float", "s", "until the next reset", 0),
        Field("used_up_in_s", "float", "s", "until the plan is used up, as forecast; absent when it lasts", 0),
    ),
)
