//! The command line.

use std::error::Error as _;
use std::str::FromStr;

use clap::builder::ValueParser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::values;

pub const HELP: &str = "\
tandem-link: a radio link between two network namespaces, played from a timeline

Usage: tandem-link --a-netns PATH --b-netns PATH --timeline FILE [--epoch-ns E] [options]
       tandem-link --a-netns PATH --b-netns PATH --down-bit-per-s R --up-bit-per-s R [options]
       tandem-link --check --timeline FILE

Makes a TUN device in each namespace and carries packets between them: loss, then a byte-limited
drop-tail queue served as the capacity of the moment allows, then propagation. 'down' runs from b
(the operator) to a (the probe), 'up' from a to b. Prints 'ready' once both devices are up. Give
them addresses yourself. Ends on SIGTERM (exit 0) or Ctrl-C (130); the devices go with it.

Ends of the link:
  --a-netns PATH         namespace of the probe's end, e.g. /proc/PID/ns/net  [this one]
  --a-name NAME          interface there  [wwan0]
  --b-netns PATH         namespace of the operator's end  [this one]
  --b-name NAME          interface there  [ran0]
  --mtu BYTES            of both interfaces, 68 to 65535  [1500]

What it offers, from a file:
  --timeline FILE        JSON lines, format tandem-timeline/1: one object a tick with t_s,
                         down_bit_per_s, up_bit_per_s, rtt_ms, buffer_down_bytes,
                         buffer_up_bytes, loss_down, loss_up, outage, queue ('kept' or 'dropped')
  --epoch-ns NS          CLOCK_MONOTONIC at t_s = 0  [now]
  --check                read the timeline, say what is wrong or how long it is, and end

or constant:
  --down-bit-per-s R     capacity down, bit/s
  --up-bit-per-s R       capacity up, bit/s
  --rtt-ms MS            propagation, both ways together  [40]
  --buffer-down-bytes N  [1000000]
  --buffer-up-bytes N    [500000]
  --loss-down P          share of packets lost, 0 to 1  [0]
  --loss-up P            [0]

or, in place of a direction's rate:
  --down-trace FILE      a packet-delivery trace (mahimahi): one millisecond a line at which 1500
  --up-trace FILE        bytes may pass; it begins anew after its last, at the epoch for one. The
                         timeline's outages do not close that direction: the trace has its own
  --down-light-trace F   that of the hardly used link beside it, which then is that of the loaded
  --up-light-trace F     one: in between by load, the share of the time in which packets waited
  --light-rtt-ms MS      propagation of the hardly used link, both ways together  [no other]
  --load-ms MS           over so long the load is forgotten  [60]

More:
  --log FILE             ten lines a second and direction: queue, delay, bytes, drops, lateness
  --operator NAME        name in the log  [the timeline's, else the name of a's interface]
  --seed N               of the losses  [1]
  --grain-us US          while traffic flows, the pause between two rounds of reading and writing:
                         packets leave up to that late, and a longer pause costs less processor
                         time; 0 wakes for each packet  [200]
  --help, --version

While it runs, lines on stdin change it; each is answered by 'ok' or 'error: …' on stdout:
  set   down|up|both  rate BIT_PER_S | delay_us US (one way) | buffer_bytes N | loss P
                      | outage on|off | queue kept|dropped
  clear down|up|both  rate | delay_us | buffer_bytes | loss | outage | queue
A quantity that was set holds until it is cleared, whatever the timeline says. End of input on
stdin means nothing.

Exit: 0 ended as told, 2 wrong usage or timeline, 3 no permission, namespace or TUN, 130 Ctrl-C.
";

/// Over so long the load is forgotten, where nothing else is said.
pub const LOAD_NS: u64 = 60_000_000;

#[derive(Debug, PartialEq)]
pub enum Source {
    Timeline(String),
    Constant(Constant),
}

#[derive(Debug, PartialEq, Default)]
pub struct Constant {
    pub down_bit_per_s: u64,
    pub up_bit_per_s: u64,
    pub delay_ns: u64,
    pub buffer_down: u64,
    pub buffer_up: u64,
    pub loss_down: u128,
    pub loss_up: u128,
}

#[derive(Debug, PartialEq)]
pub struct Options {
    pub a_netns: Option<String>,
    pub a_name: String,
    pub b_netns: Option<String>,
    pub b_name: String,
    pub mtu: u16,
    pub source: Source,
    pub epoch_ns: Option<u64>,
    pub log: Option<String>,
    pub operator: Option<String>,
    pub seed: u64,
    pub grain_us: u64,
    pub check: bool,
    pub down_trace: Option<String>,
    pub up_trace: Option<String>,
    pub down_light_trace: Option<String>,
    pub up_light_trace: Option<String>,
    pub light_delay_ns: Option<u64>,
    pub load_ns: u64,
}

#[derive(Debug, PartialEq)]
pub enum Asked {
    Run(Box<Options>),
    Help,
    Version,
}

/// Parse the arguments after the program's name; the error is one line.
pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Asked, String> {
    let found = command().try_get_matches_from(arguments).map_err(|error| complaint(&error))?;
    if found.get_flag("help") {
        return Ok(Asked::Help);
    }
    if found.get_flag("version") {
        return Ok(Asked::Version);
    }
    options(&found).map(|options| Asked::Run(Box::new(options)))
}

fn command() -> Command {
    let flag = |name| Arg::new(name).long(name).action(ArgAction::SetTrue);
    let option = |name: &&'static str| Arg::new(*name).long(*name).allow_hyphen_values(true);
    let typed = |name, parser: ValueParser| option(name).value_parser(parser);
    Command::new("tandem-link")
        .no_binary_name(true)
        .disable_help_flag(true)
        .disable_version_flag(true)
        .args([flag("help").short('h'), flag("version"), flag("check")])
        .args(TEXTS.iter().map(option))
        .args([
            typed(&"mtu", ValueParser::new(mtu)),
            typed(&"epoch-ns", ValueParser::new(whole::<u64>)),
            typed(&"seed", ValueParser::new(whole::<u64>)),
            typed(&"grain-us", ValueParser::new(grain)),
            typed(&"down-bit-per-s", number(values::rate)),
            typed(&"up-bit-per-s", number(values::rate)),
            typed(&"rtt-ms", number(values::delay_of_rtt)),
            typed(&"buffer-down-bytes", number(values::buffer)),
            typed(&"buffer-up-bytes", number(values::buffer)),
            typed(&"loss-down", number(values::loss)),
            typed(&"loss-up", number(values::loss)),
            typed(&"light-rtt-ms", number(values::delay_of_rtt)),
            typed(&"load-ms", number(load)),
        ])
}

const TEXTS: [&str; 11] = [
    "a-netns",
    "a-name",
    "b-netns",
    "b-name",
    "timeline",
    "down-trace",
    "up-trace",
    "down-light-trace",
    "up-light-trace",
    "log",
    "operator",
];
const CONSTANTS: [&str; 7] =
    ["down-bit-per-s", "up-bit-per-s", "rtt-ms", "buffer-down-bytes", "buffer-up-bytes", "loss-down", "loss-up"];

fn whole<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{text:?} is not a whole number in range; see --help"))
}

fn mtu(text: &str) -> Result<u16, String> {
    match whole(text)? {
        0..=67 => Err("below 68 bytes there is no IPv4".into()),
        mtu => Ok(mtu),
    }
}

fn grain(text: &str) -> Result<u64, String> {
    match whole(text)? {
        10_001.. => Err("above 10000 µs it would be a delay of its own".into()),
        grain_us => Ok(grain_us),
    }
}

fn number<T: Clone + Send + Sync + 'static>(convert: fn(f64) -> Result<T, String>) -> ValueParser {
    ValueParser::new(move |text: &str| convert(text.parse().map_err(|_| format!("{text:?} is not a number"))?))
}

fn load(ms: f64) -> Result<u64, String> {
    match values::delay_of_rtt(ms)? * 2 {
        0 => Err("0 would forget the load at once".into()),
        load_ns => Ok(load_ns),
    }
}

/// One line of clap's several: whoever starts a link shows the last line.
fn complaint(error: &clap::Error) -> String {
    let argument = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(argument)) => argument.as_str(),
        _ => "",
    };
    let name = argument.split(' ').next().unwrap_or_default();
    match (error.kind(), error.source()) {
        (ErrorKind::ArgumentConflict, _) => format!("{name} is given twice"),
        (ErrorKind::InvalidValue, _) => format!("{name} wants a value; see --help"),
        (ErrorKind::ValueValidation, Some(why)) => format!("{name}: {why}"),
        _ => format!("{argument:?} is no option; see --help"),
    }
}

fn source(found: &ArgMatches) -> Result<Source, String> {
    let constant = CONSTANTS.into_iter().find(|name| found.contains_id(name));
    if let Some(timeline) = found.get_one::<String>("timeline") {
        return match constant {
            None => Ok(Source::Timeline(timeline.clone())),
            Some(name) => Err(format!("--{name} and --timeline exclude each other; change a running link on stdin")),
        };
    }
    for (name, trace) in [("down-bit-per-s", "down-trace"), ("up-bit-per-s", "up-trace")] {
        if !found.contains_id(name) && !found.contains_id(trace) {
            return Err(format!("--{name} is missing; give it or --timeline"));
        }
    }
    let whole = |name, default| found.get_one(name).copied().unwrap_or(default);
    let loss = |name| found.get_one(name).copied().unwrap_or_default();
    Ok(Source::Constant(Constant {
        down_bit_per_s: whole("down-bit-per-s", 0),
        up_bit_per_s: whole("up-bit-per-s", 0),
        delay_ns: whole("rtt-ms", 20_000_000),
        buffer_down: whole("buffer-down-bytes", 1_000_000),
        buffer_up: whole("buffer-up-bytes", 500_000),
        loss_down: loss("loss-down"),
        loss_up: loss("loss-up"),
    }))
}

fn options(found: &ArgMatches) -> Result<Options, String> {
    for (light, trace) in [("down-light-trace", "down-trace"), ("up-light-trace", "up-trace")] {
        if found.contains_id(light) && !found.contains_id(trace) {
            return Err(format!("--{light} wants --{trace}, that of the loaded link, beside it"));
        }
    }
    let lit = found.contains_id("down-light-trace") || found.contains_id("up-light-trace");
    if let Some(name) = ["light-rtt-ms", "load-ms"].into_iter().find(|name| !lit && found.contains_id(name)) {
        return Err(format!("--{name} goes with --down-light-trace or --up-light-trace"));
    }
    let text = |name| found.get_one::<String>(name).cloned();
    let whole = |name| found.get_one::<u64>(name).copied();
    Ok(Options {
        a_netns: text("a-netns"),
        a_name: text("a-name").unwrap_or_else(|| "wwan0".into()),
        b_netns: text("b-netns"),
        b_name: text("b-name").unwrap_or_else(|| "ran0".into()),
        mtu: found.get_one("mtu").copied().unwrap_or(1500),
        source: source(found)?,
        epoch_ns: whole("epoch-ns"),
        log: text("log"),
        operator: text("operator"),
        seed: whole("seed").unwrap_or(1),
        grain_us: whole("grain-us").unwrap_or(200),
        check: found.get_flag("check"),
        down_trace: text("down-trace"),
        up_trace: text("up-trace"),
        down_light_trace: text("down-light-trace"),
        up_light_trace: text("up-light-trace"),
        light_delay_ns: whole("light-rtt-ms"),
        load_ns: whole("load-ms").unwrap_or(LOAD_NS),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Asked, String> {
        parse(line.split_whitespace().map(String::from))
    }

    #[test]
    fn a_timeline_or_constants() {
        let Asked::Run(options) =
            parsed("--a-netns /x --b-netns=/y --timeline t --epoch-ns 5 --log l --mtu 1400").unwrap()
        else {
            panic!("not run")
        };
        assert_eq!(options.source, Source::Timeline("t".into()));
        assert_eq!((options.b_netns.as_deref(), options.epoch_ns, options.mtu), (Some("/y"), Some(5), 1400));
        let Asked::Run(options) = parsed("--down-bit-per-s 2e7 --up-bit-per-s 5000000 --loss-up 1").unwrap() else {
            panic!("not run")
        };
        let Source::Constant(constant) = &options.source else { panic!("not constant") };
        assert_eq!(
            (constant.down_bit_per_s, constant.up_bit_per_s, constant.delay_ns),
            (20_000_000, 5_000_000, 20_000_000)
        );
        assert_eq!((constant.loss_up, constant.loss_down), (1 << 64, 0));
    }

    #[test]
    fn wrong_usage_is_one_line() {
        for (line, message) in [
            ("", "--down-bit-per-s is missing"),
            ("--timeline", "--timeline wants a value"),
            ("--timeline t --rtt-ms 5", "--rtt-ms and --timeline exclude each other"),
            ("--timeline t --seed x", "--seed: \"x\" is not a whole number"),
            ("--timeline t --mtu 10", "--mtu: below 68"),
            ("--timeline t --timeline u", "--timeline is given twice"),
            ("--down-bit-per-s 1 --up-bit-per-s -1", "--up-bit-per-s: -1 is not within"),
            ("--timeline t --down-light-trace l", "--down-light-trace wants --down-trace"),
            ("--timeline t --down-trace d --load-ms 50", "--load-ms goes with --down-light-trace"),
            ("--timeline t --up-trace d --up-light-trace l --load-ms 0", "--load-ms: 0 would forget"),
            ("--fast", "\"--fast\" is no option"),
            ("stray", "\"stray\" is no option"),
        ] {
            let error = parsed(line).unwrap_err();
            assert!(error.starts_with(message) && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn the_help_names_every_option() {
        let command = command();
        for name in command.get_arguments().filter_map(Arg::get_long) {
            assert!(HELP.contains(&format!("--{name}")), "{name}");
        }
    }

    #[test]
    fn help_and_version_are_answered_whatever_else_is_there() {
        assert_eq!(parsed("--timeline t --help"), Ok(Asked::Help));
        assert_eq!(parsed("--version"), Ok(Asked::Version));
    }
}
