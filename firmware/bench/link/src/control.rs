//! Lines on stdin that change the link while it runs.
//!
//! `set down|up|both QUANTITY VALUE` and `clear down|up|both QUANTITY`; the quantities are in `USAGE`.

use crate::values::{self, Change};

pub const USAGE: &str = "set|clear down|up|both rate (bit/s) | delay_us | buffer_bytes | loss (0 to 1) | outage (on, off) | queue (kept, dropped)";

/// Which directions a line speaks of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scope {
    pub down: bool,
    pub up: bool,
}

pub fn parse(line: &str) -> Result<(Scope, Change), String> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let (scope, name, value) = match words[..] {
        ["set", scope, name, value] => (scope, name, Some(value)),
        ["clear", scope, name] => (scope, name, None),
        _ => return Err(format!("cannot read {line:?}; expected {USAGE}")),
    };
    let scope = match scope {
        "down" => Scope { down: true, up: false },
        "up" => Scope { down: false, up: true },
        "both" => Scope { down: true, up: true },
        other => return Err(format!("{other:?} is not down, up or both")),
    };
    let change = match name {
        "rate" => Change::Rate(number(value, values::rate)?),
        "delay_us" => Change::DelayNs(number(value, values::delay_of_us)?),
        "buffer_bytes" => Change::Buffer(number(value, values::buffer)?),
        "loss" => Change::Loss(number(value, values::loss)?),
        "outage" => Change::Outage(one_of(value, "on", "off")?),
        "queue" => Change::QueueDropped(one_of(value, "dropped", "kept")?),
        other => return Err(format!("{other:?} is no quantity; expected {USAGE}")),
    };
    Ok((scope, change))
}

fn number<T>(value: Option<&str>, convert: fn(f64) -> Result<T, String>) -> Result<Option<T>, String> {
    let parsed = |text: &str| text.parse::<f64>().map_err(|_| format!("{text:?} is not a number"));
    value.map(|text| parsed(text).and_then(convert)).transpose()
}

fn one_of(value: Option<&str>, yes: &str, no: &str) -> Result<Option<bool>, String> {
    match value {
        Some(word) if word != yes && word != no => Err(format!("{word:?} is not {yes} or {no}")),
        word => Ok(word.map(|word| word == yes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{threshold, Random};

    #[test]
    fn every_quantity_is_set_and_cleared() {
        let down = Scope { down: true, up: false };
        let both = Scope { down: true, up: true };
        for (line, scope, change) in [
            ("set down rate 20000000", down, Change::Rate(Some(20_000_000))),
            ("set down delay_us 25000", down, Change::DelayNs(Some(25_000_000))),
            ("set both buffer_bytes 1e6", both, Change::Buffer(Some(1_000_000))),
            ("set down loss 0.5", down, Change::Loss(Some(threshold(0.5)))),
            ("set both outage on", both, Change::Outage(Some(true))),
            ("set both outage off", both, Change::Outage(Some(false))),
            ("set both queue dropped", both, Change::QueueDropped(Some(true))),
            ("clear both queue", both, Change::QueueDropped(None)),
            ("clear down rate", down, Change::Rate(None)),
        ] {
            assert_eq!(parse(line), Ok((scope, change)), "{line}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for line in [
            "",
            "set",
            "set down rate",
            "set down rate 1 2",
            "clear down rate 1",
            "set left rate 1",
            "set down speed 1",
            "set down rate fast",
            "set down rate -1",
            "set down rate nan",
            "set down rate inf",
            "set down rate 1e12",
            "set up loss 1.01",
            "set up outage yes",
            "set up queue lost",
            "set up delay_us -0.1",
            "set up buffer_bytes 1e10",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn no_line_makes_it_panic() {
        let words = ["set", "clear", "down", "both", "rate", "loss", "outage", "on", "1e400", "-", "0.5", "ß", "\0"];
        let mut random = Random::new(3, 0);
        for _ in 0..50_000 {
            let line: Vec<&str> = (0..random.next() % 6).map(|_| words[(random.next() % 13) as usize]).collect();
            if let Ok((scope, _)) = parse(&line.join(" ")) {
                assert!(scope.down || scope.up);
            }
        }
    }
}
