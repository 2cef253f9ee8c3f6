//! The timeline file: what the link offers, tick by tick (JSON lines, format `tandem-timeline/1`).

use serde_json::{Map, Value};

use crate::values::{self, Values};

type Object = Map<String, Value>;

/// From `t_ns` (since the epoch) on these values hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tick {
    pub t_ns: u64,
    pub down: Values,
    pub up: Values,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    pub operator: Option<String>,
    /// At least one; `t_ns` grows strictly. The first also holds before its time, the last for ever after.
    pub ticks: Vec<Tick>,
}

/// Parse the text of a timeline. The error is `LINE: what is wrong`; the caller puts the file's name before it.
pub fn parse(text: &str) -> Result<Timeline, String> {
    let mut lines = text.lines().enumerate();
    let Some((_, first)) = lines.next() else {
        return Err("1: the file is empty; the first line must be the header".into());
    };
    let header = parse_object(first).map_err(|e| format!("1: {e}"))?;
    match header.get("format") {
        Some(Value::String(format)) if format == "tandem-timeline/1" => {}
        Some(Value::String(format)) => {
            return Err(format!("1: format {format:?} is not known; \"tandem-timeline/1\" is"))
        }
        _ => return Err("1: no header; expected {\"format\":\"tandem-timeline/1\",…}".into()),
    }
    let operator = match header.get("operator") {
        None | Some(Value::Null) => None,
        Some(Value::String(name)) => Some(name.clone()),
        Some(other) => return Err(format!("1: operator is {}, not a string", kind(other))),
    };
    let mut ticks: Vec<Tick> = Vec::new();
    for (index, line) in lines {
        let number = index + 1;
        let object = parse_object(line).map_err(|e| format!("{number}: {e}"))?;
        let tick = tick(&object).map_err(|e| format!("{number}: {e}"))?;
        if ticks.last().is_some_and(|last| tick.t_ns <= last.t_ns) {
            return Err(format!("{number}: t_s does not grow; each line must be later than the one before"));
        }
        ticks.push(tick);
    }
    if ticks.is_empty() {
        return Err("2: no tick after the header".into());
    }
    Ok(Timeline { operator, ticks })
}

fn tick(object: &Object) -> Result<Tick, String> {
    let t_s = number(object, "t_s", Ok)?;
    if !(0.0..=1e7).contains(&t_s) {
        return Err(format!("t_s: {t_s} is not within 0 to 1e7 s"));
    }
    let outage = match object.get("outage") {
        None => false,
        Some(Value::Bool(outage)) => *outage,
        Some(other) => return Err(format!("outage is {}, not true or false", kind(other))),
    };
    let queue_dropped = match object.get("queue") {
        None => false,
        Some(Value::String(word)) if word == "kept" => false,
        Some(Value::String(word)) if word == "dropped" => true,
        Some(_) => return Err("queue must be \"kept\" or \"dropped\"".into()),
    };
    let delay_ns = number(object, "rtt_ms", values::delay_of_rtt)?;
    let side = |rate: &str, buffer: &str, loss: &str| -> Result<Values, String> {
        Ok(Values {
            rate: number(object, rate, values::rate)?,
            delay_ns,
            buffer: number(object, buffer, values::buffer)?,
            loss: number(object, loss, values::loss)?,
            outage,
            queue_dropped,
        })
    };
    Ok(Tick {
        t_ns: (t_s * 1e9).round() as u64,
        down: side("down_bit_per_s", "buffer_down_bytes", "loss_down")?,
        up: side("up_bit_per_s", "buffer_up_bytes", "loss_up")?,
    })
}

fn number<T>(object: &Object, key: &str, convert: impl Fn(f64) -> Result<T, String>) -> Result<T, String> {
    let value = object.get(key).ok_or_else(|| format!("{key} is missing"))?;
    let number = value.as_f64().ok_or_else(|| format!("{key} is {}, not a number", kind(value)))?;
    convert(number).map_err(|e| format!("{key}: {e}"))
}

/// One line's object. The error says what is wrong and at which byte.
fn parse_object(line: &str) -> Result<Object, String> {
    serde_json::from_str(line).map_err(|e| e.to_string().replace(" at line 1 column ", " at byte "))
}

/// What a value is, for messages.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) | Value::Object(_) => "a nested value",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{threshold, Random};

    const HEADER: &str = r#"{"format":"tandem-timeline/1","operator":"A","tick_s":0.1,"duration_s":1}"#;

    fn line(t_s: f64, rest: &str) -> String {
        format!(
            r#"{{"t_s":{t_s},"rsrp_dbm":null,"rat":"lte","down_bit_per_s":45e6,"up_bit_per_s":1e7,"rtt_ms":50,"buffer_down_bytes":1000000,"buffer_up_bytes":500000,"loss_down":0.5,"loss_up":0{rest}}}"#
        )
    }

    #[test]
    fn a_timeline_is_read() {
        let text = format!("{HEADER}\n{}\n{}\n", line(0.0, ""), line(0.1, r#","outage":true,"queue":"dropped""#));
        let timeline = parse(&text).unwrap();
        assert_eq!(timeline.operator.as_deref(), Some("A"));
        let [first, second] = timeline.ticks[..] else { panic!("two ticks") };
        assert_eq!((first.t_ns, second.t_ns), (0, 100_000_000));
        assert_eq!(first.down.capacity(), 45_000_000);
        assert_eq!(first.up.capacity(), 10_000_000);
        assert_eq!(first.up.delay_ns, 25_000_000);
        assert_eq!(first.down.loss, threshold(0.5));
        assert_eq!((first.down.buffer, first.up.buffer), (1_000_000, 500_000));
        assert!(!first.down.discards());
        assert!(second.down.discards());
        assert_eq!(second.up.capacity(), 0);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (text, message) in [
            (String::new(), "1: the file is empty"),
            ("{}".into(), "1: no header"),
            (HEADER.replace("/1", "/2"), "1: format \"tandem-timeline/2\" is not known"),
            (HEADER.into(), "2: no tick"),
            (format!("{HEADER}\n{}\n\n", line(0.0, "")), "3: EOF while parsing a value at byte 0"),
            (format!("{HEADER}\n{}\n{}", line(0.1, ""), line(0.1, "")), "3: t_s does not grow"),
            (format!("{HEADER}\n{}", line(-1.0, "")), "2: t_s: -1"),
            (format!("{HEADER}\n{}", line(0.0, r#","queue":"x""#)), "2: queue must be"),
            (format!("{HEADER}\n{}", line(0.0, r#","outage":1"#)), "2: outage is a number"),
            (format!("{HEADER}\n{}", line(0.0, "").replace("0.5", "1.5")), "2: loss_down: 1.5 is not within 0 to 1"),
            (format!("{HEADER}\n{}", line(0.0, "").replace("45e6", "null")), "2: down_bit_per_s is null"),
            (format!("{HEADER}\n{}", line(0.0, "").replace("rtt_ms", "rtt")), "2: rtt_ms is missing"),
        ] {
            let error = parse(&text).unwrap_err();
            assert!(error.starts_with(message), "{error} for {text}");
        }
    }

    #[test]
    fn no_text_makes_it_panic_and_what_is_taken_is_in_bounds() {
        let whole = format!("{HEADER}\n{}\n{}\n", line(0.0, ""), line(0.1, r#","outage":true"#));
        let mut random = Random::new(5, 0);
        let mut taken = 0;
        for _ in 0..20_000 {
            let mut bytes = whole.clone().into_bytes();
            for _ in 0..1 + random.next() % 3 {
                let place = (random.next() % bytes.len() as u64) as usize;
                bytes[place] = b"0123456789-+.eE,:{}\"\n nulltrue"[(random.next() % 30) as usize];
            }
            if let Ok(timeline) = parse(&String::from_utf8_lossy(&bytes)) {
                taken += 1;
                assert!(timeline.ticks.windows(2).all(|pair| pair[0].t_ns < pair[1].t_ns));
                for tick in &timeline.ticks {
                    assert!(tick.down.rate <= values::MAX_RATE as u64 && tick.down.loss <= threshold(1.0));
                    assert!(tick.down.delay_ns <= values::MAX_DELAY_NS);
                }
            }
        }
        assert!(taken > 100, "the changes were too wild to show anything: {taken}");
    }
}
