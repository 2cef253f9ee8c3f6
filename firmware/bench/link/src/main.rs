//! `tandem-link`: a trace-driven link between two network namespaces. See `options::HELP`.

mod clock;
mod control;
mod log;
mod model;
mod opportunities;
mod options;
mod pump;
mod random;
mod supervisor;
mod timeline;
mod tun;
mod values;

use std::fs::{self, File};
use std::process::ExitCode;
use std::sync::Arc;

use model::Step;
use opportunities::{Light, Opportunities, Trace};
use options::{Asked, Options, Source};
use values::Values;

/// Exit statuses, as all programs of the kit have them.
pub const USAGE: u8 = 2;
pub const ENVIRONMENT: u8 = 3;
pub const INTERRUPTED: u8 = 130;

/// Exit status and the one line that says why.
pub type Failure = (u8, String);

fn main() -> ExitCode {
    match options::parse(std::env::args().skip(1)) {
        Ok(Asked::Help) => print!("{}", options::HELP),
        Ok(Asked::Version) => println!("tandem-link {}", env!("CARGO_PKG_VERSION")),
        Ok(Asked::Run(options)) => match run(&options) {
            Ok(status) => return ExitCode::from(status),
            Err((status, message)) => {
                eprintln!("tandem-link: {message}");
                return ExitCode::from(status);
            }
        },
        Err(message) => {
            eprintln!("tandem-link: {message}");
            return ExitCode::from(USAGE);
        }
    }
    ExitCode::SUCCESS
}

fn run(options: &Options) -> Result<u8, Failure> {
    let mut plan = plan(options)?;
    let read = |path: &Option<String>| path.as_deref().map(trace).transpose();
    let (down_trace, up_trace) = (read(&options.down_trace)?, read(&options.up_trace)?);
    let (down_light, up_light) = (read(&options.down_light_trace)?, read(&options.up_light_trace)?);
    for tick in &mut plan.ticks {
        tick.down.outage &= down_trace.is_none();
        tick.up.outage &= up_trace.is_none();
    }
    if options.check {
        let last = plan.ticks.last().map_or(0, |tick| tick.t_ns);
        println!("{} ticks, the last at {:.3} s", plan.ticks.len(), last as f64 / 1e9);
        let traces = [("down", &down_trace), ("up", &up_trace), ("down, light", &down_light), ("up, light", &up_light)];
        for (name, (count, period_ms)) in traces.iter().filter_map(|(n, t)| t.as_ref().map(|t| (n, t.size()))) {
            println!("{name}: {count} opportunities in {:.3} s", period_ms as f64 / 1e3);
        }
        return Ok(0);
    }
    let stop_signals = supervisor::hold_signals().map_err(|e| (ENVIRONMENT, e))?;
    let environment = |message: String| (ENVIRONMENT, message);
    let a = tun::Tun::open(options.a_netns.as_deref(), &options.a_name, options.mtu).map_err(environment)?;
    let b = tun::Tun::open(options.b_netns.as_deref(), &options.b_name, options.mtu).map_err(environment)?;
    let log = options.log.as_ref().map(|path| create(path)).transpose()?;
    let start_ns = clock::monotonic_ns();
    let epoch_ns = options.epoch_ns.unwrap_or(start_ns);
    let side = |pick: fn(&timeline::Tick) -> Values| -> Vec<Step> {
        plan.ticks.iter().map(|tick| Step { at_ns: epoch_ns.saturating_add(tick.t_ns), values: pick(tick) }).collect()
    };
    let laid = |trace: Option<Trace>| trace.map(|trace| Opportunities::new(trace, epoch_ns, start_ns));
    let lit =
        |trace: Option<Trace>| laid(trace).map(|o| Light::new(o, options.light_delay_ns, options.load_ns, start_ns));
    let link = supervisor::Link {
        a: Arc::new(a),
        b: Arc::new(b),
        down: model::Direction::new(side(|tick| tick.down), start_ns, random::Random::new(options.seed, 0))
            .with_opportunities(laid(down_trace))
            .with_light(lit(down_light)),
        up: model::Direction::new(side(|tick| tick.up), start_ns, random::Random::new(options.seed, 1))
            .with_opportunities(laid(up_trace))
            .with_light(lit(up_light)),
        grain_ns: options.grain_us.saturating_mul(1000),
        log,
        operator: options.operator.clone().or(plan.operator).unwrap_or_else(|| options.a_name.clone()),
        epoch_ns,
        start_ns,
    };
    supervisor::run(link, &stop_signals)
}

fn create(path: &str) -> Result<File, Failure> {
    File::create(path).map_err(|e| (ENVIRONMENT, format!("{path}: cannot write the log: {e}")))
}

fn text(path: &str) -> Result<String, Failure> {
    let bytes = fs::read(path).map_err(|e| (USAGE, format!("{path}: {e}")))?;
    String::from_utf8(bytes).map_err(|e| {
        let line = 1 + e.as_bytes()[..e.utf8_error().valid_up_to()].iter().filter(|&&b| b == b'\n').count();
        (USAGE, format!("{path}:{line}: not UTF-8"))
    })
}

fn trace(path: &str) -> Result<Trace, Failure> {
    Trace::parse(&text(path)?).map_err(|e| (USAGE, format!("{path}:{e}")))
}

fn plan(options: &Options) -> Result<timeline::Timeline, Failure> {
    match &options.source {
        Source::Timeline(path) => timeline::parse(&text(path)?).map_err(|e| (USAGE, format!("{path}:{e}"))),
        Source::Constant(constant) => {
            let values = |rate, buffer, loss| Values {
                rate,
                delay_ns: constant.delay_ns,
                buffer,
                loss,
                outage: false,
                queue_dropped: false,
            };
            let down = values(constant.down_bit_per_s, constant.buffer_down, constant.loss_down);
            let up = values(constant.up_bit_per_s, constant.buffer_up, constant.loss_up);
            Ok(timeline::Timeline { operator: None, ticks: vec![timeline::Tick { t_ns: 0, down, up }] })
        }
    }
}
