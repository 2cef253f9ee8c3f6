//! The command line.

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

/// Over so long the load is forgotten, where nothing else is said, ms.
pub const LOAD_MS: f64 = 60.0;

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
    let mut given = Given::default();
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        let (name, inline) = match argument.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name.to_string(), Some(value.to_string())),
            _ => (argument, None),
        };
        match name.as_str() {
            "--help" | "-h" => return Ok(Asked::Help),
            "--version" => return Ok(Asked::Version),
            "--check" => given.check = true,
            name if known(name) => {
                let value =
                    inline.or_else(|| arguments.next()).ok_or_else(|| format!("{name} wants a value; see --help"))?;
                if given.values.iter().any(|(known, _)| known == name) {
                    return Err(format!("{name} is given twice"));
                }
                given.values.push((name.to_string(), value));
            }
            other => return Err(format!("{other:?} is no option; see --help")),
        }
    }
    given.options().map(|options| Asked::Run(Box::new(options)))
}

/// Every option that takes a value stands at the beginning of a line of the help.
fn known(name: &str) -> bool {
    name.starts_with("--") && HELP.lines().any(|line| line.split_whitespace().next() == Some(name))
}

const CONSTANTS: [&str; 7] = [
    "--down-bit-per-s",
    "--up-bit-per-s",
    "--rtt-ms",
    "--buffer-down-bytes",
    "--buffer-up-bytes",
    "--loss-down",
    "--loss-up",
];
#[derive(Default)]
struct Given {
    values: Vec<(String, String)>,
    check: bool,
}

impl Given {
    fn text(&self, name: &str) -> Option<String> {
        self.values.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    }

    fn whole<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, String> {
        let wrong = |text: &String| format!("{name}: {text:?} is not a whole number in range; see --help");
        self.text(name).map(|text| text.parse().map_err(|_| wrong(&text))).transpose()
    }

    fn number<T>(&self, name: &str, default: f64, convert: impl Fn(f64) -> Result<T, String>) -> Result<T, String> {
        let number = match self.text(name) {
            None => default,
            Some(text) => text.parse().map_err(|_| format!("{name}: {text:?} is not a number"))?,
        };
        convert(number).map_err(|e| format!("{name}: {e}"))
    }

    fn source(&self) -> Result<Source, String> {
        let constant = CONSTANTS.into_iter().find(|name| self.text(name).is_some());
        if let Some(timeline) = self.text("--timeline") {
            return match constant {
                None => Ok(Source::Timeline(timeline)),
                Some(name) => Err(format!("{name} and --timeline exclude each other; change a running link on stdin")),
            };
        }
        for (name, trace) in [(CONSTANTS[0], "--down-trace"), (CONSTANTS[1], "--up-trace")] {
            if self.text(name).is_none() && self.text(trace).is_none() {
                return Err(format!("{name} is missing; give it or --timeline"));
            }
        }
        Ok(Source::Constant(Constant {
            down_bit_per_s: self.number("--down-bit-per-s", 0.0, values::rate)?,
            up_bit_per_s: self.number("--up-bit-per-s", 0.0, values::rate)?,
            delay_ns: self.number("--rtt-ms", 40.0, values::delay_of_rtt)?,
            buffer_down: self.number("--buffer-down-bytes", 1e6, values::buffer)?,
            buffer_up: self.number("--buffer-up-bytes", 5e5, values::buffer)?,
            loss_down: self.number("--loss-down", 0.0, values::loss)?,
            loss_up: self.number("--loss-up", 0.0, values::loss)?,
        }))
    }

    fn options(self) -> Result<Options, String> {
        let grain_us = self.whole("--grain-us")?.unwrap_or(200);
        if grain_us > 10_000 {
            return Err("--grain-us: above 10000 µs it would be a delay of its own".into());
        }
        let mtu = self.whole("--mtu")?.unwrap_or(1500);
        if mtu < 68 {
            return Err("--mtu: below 68 bytes there is no IPv4".into());
        }
        for (light, trace) in [("--down-light-trace", "--down-trace"), ("--up-light-trace", "--up-trace")] {
            if self.text(light).is_some() && self.text(trace).is_none() {
                return Err(format!("{light} wants {trace}, that of the loaded link, beside it"));
            }
        }
        let lit = self.text("--down-light-trace").or(self.text("--up-light-trace")).is_some();
        if let Some(name) = ["--light-rtt-ms", "--load-ms"].into_iter().find(|name| !lit && self.text(name).is_some()) {
            return Err(format!("{name} goes with --down-light-trace or --up-light-trace"));
        }
        let light_delay_ns = self.number("--light-rtt-ms", 0.0, values::delay_of_rtt)?;
        let load_ns = self.number("--load-ms", LOAD_MS, values::delay_of_rtt)? * 2;
        if load_ns == 0 {
            return Err("--load-ms: 0 would forget the load at once".into());
        }
        Ok(Options {
            a_netns: self.text("--a-netns"),
            a_name: self.text("--a-name").unwrap_or_else(|| "wwan0".into()),
            b_netns: self.text("--b-netns"),
            b_name: self.text("--b-name").unwrap_or_else(|| "ran0".into()),
            mtu,
            source: self.source()?,
            epoch_ns: self.whole("--epoch-ns")?,
            log: self.text("--log"),
            operator: self.text("--operator"),
            seed: self.whole("--seed")?.unwrap_or(1),
            grain_us,
            check: self.check,
            down_trace: self.text("--down-trace"),
            up_trace: self.text("--up-trace"),
            down_light_trace: self.text("--down-light-trace"),
            up_light_trace: self.text("--up-light-trace"),
            light_delay_ns: self.text("--light-rtt-ms").map(|_| light_delay_ns),
            load_ns,
        })
    }
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
    fn help_and_version_are_answered_whatever_else_is_there() {
        assert_eq!(parsed("--timeline t --help"), Ok(Asked::Help));
        assert_eq!(parsed("--version"), Ok(Asked::Version));
    }
}
