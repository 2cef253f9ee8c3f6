//! The link's own log: what one direction did in a tenth of a second, as one JSON line.

use std::fs::File;
use std::io::Write;
use std::sync::mpsc::Receiver;

use crate::clock;
use crate::model::Counts;

/// Length of one interval of the log.
pub const INTERVAL_NS: u64 = 100_000_000;

/// One interval of one direction.
pub struct Row {
    pub direction: &'static str,
    /// The interval's end.
    pub monotonic_ns: u64,
    /// At the interval's end.
    pub queue_bytes: u64,
    /// Offered at the interval's end, bit/s; by a packet-delivery trace: mean over the interval.
    pub capacity: u64,
    pub counts: Counts,
    pub written: Written,
}

/// What was written out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Written {
    pub packets: u64,
    pub bytes: u64,
    /// Refused by the receiving interface, because it is down.
    pub refused: u64,
    pub delay_ns: u64,
    pub late_ns: u64,
    pub late_max_ns: u64,
}

/// Write rows as they come, until the last sender is gone. `epoch_ns` is t_s = 0.
pub fn write(rows: &Receiver<Row>, file: &mut File, operator: &str, epoch_ns: u64) -> std::io::Result<()> {
    let operator = serde_json::Value::from(operator).to_string();
    for row in rows {
        file.write_all(line(&row, &operator, epoch_ns, clock::utc_ns(), clock::monotonic_ns()).as_bytes())?;
    }
    Ok(())
}

fn line(row: &Row, operator: &str, epoch_ns: u64, utc_now_ns: u64, monotonic_now_ns: u64) -> String {
    let Row { direction, monotonic_ns, queue_bytes, capacity, counts, written } = row;
    let utc_ns = utc_now_ns - monotonic_now_ns.saturating_sub(*monotonic_ns);
    let t_s = (*monotonic_ns as f64 - epoch_ns as f64) / 1e9;
    let dropped = counts.dropped_buffer + counts.dropped_loss + counts.dropped_outage + written.refused;
    let mut line = format!(
        "{{\"t_s\":{t_s:.3},\"monotonic_ns\":{monotonic_ns},\"utc_ns\":{utc_ns},\"type\":\"link_log\",\
         \"operator\":{operator},\"direction\":\"{direction}\",\"queue_bytes\":{queue_bytes},\"delay_ms\":{},\
         \"bytes\":{},\"packets\":{},\"offered_bytes\":{},\"offered_packets\":{},\"dropped_packets\":{dropped},",
        mean(written.delay_ns, written.packets, 1e6),
        written.bytes,
        written.packets,
        counts.offered_bytes,
        counts.offered_packets,
    );
    line.push_str(&format!(
        "\"dropped_buffer\":{},\"dropped_loss\":{},\"dropped_outage\":{},\"dropped_interface\":{},\
         \"late_us_mean\":{},\"late_us_max\":{},\"capacity_bit_per_s\":{capacity}}}\n",
        counts.dropped_buffer,
        counts.dropped_loss,
        counts.dropped_outage,
        written.refused,
        mean(written.late_ns, written.packets, 1e3),
        if written.packets == 0 { "null".into() } else { format!("{:.1}", written.late_max_ns as f64 / 1e3) },
    ));
    line
}

/// A mean with three decimals, null when there is nothing to take it of.
fn mean(sum: u64, count: u64, unit: f64) -> String {
    if count == 0 {
        return "null".into();
    }
    format!("{:.3}", sum as f64 / count as f64 / unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, Value};

    fn row(written: Written) -> Row {
        let counts =
            Counts { offered_packets: 9, offered_bytes: 9000, dropped_buffer: 1, dropped_loss: 2, dropped_outage: 3 };
        Row { direction: "down", monotonic_ns: 5_100_000_000, queue_bytes: 77, capacity: 1000, counts, written }
    }

    #[test]
    fn a_line_is_an_object_with_means_and_sums() {
        let written =
            Written { packets: 2, bytes: 3000, refused: 4, delay_ns: 50_000_000, late_ns: 30_000, late_max_ns: 20_000 };
        let operator = Value::from("A \"1\"\\\n");
        let text = line(&row(written), &operator.to_string(), 5_000_000_000, 1_000_000_000_000, 5_100_000_500);
        let object: Map<String, Value> = serde_json::from_str(&text).unwrap();
        for (key, number) in [
            ("t_s", 0.1),
            ("queue_bytes", 77.0),
            ("delay_ms", 25.0),
            ("bytes", 3000.0),
            ("dropped_packets", 10.0),
            ("late_us_mean", 15.0),
            ("late_us_max", 20.0),
            ("dropped_interface", 4.0),
            ("utc_ns", 999_999_999_500.0),
        ] {
            assert_eq!(object[key].as_f64(), Some(number), "{key}");
        }
        assert_eq!(object["operator"], operator);
    }

    #[test]
    fn nothing_written_has_no_mean() {
        let object: Value = serde_json::from_str(&line(&row(Written::default()), "\"A\"", 0, 1 << 60, 0)).unwrap();
        assert_eq!((&object["delay_ms"], &object["late_us_max"]), (&Value::Null, &Value::Null));
    }
}
