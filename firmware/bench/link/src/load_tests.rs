//! Replay by load against a link that nobody knows: pages and segments fetched over both take the same time.
//!
//! The hidden link is synthetic, and of another kind than the replay: a lone packet waits for a grant, and a second and third carrier come
//! when the queue has lasted, and go when it has been empty. What the replay knows of it are two recordings, of short trains and of a
//! queue that does not end.

use super::tests::{link, values, MS, S};
use super::*;
use crate::opportunities::Trace;

const PACKET: usize = 1500;
const PROPAGATION: u64 = 20 * MS;
const GRANT: u64 = 10 * MS;

/// One direction that packets pass, in virtual time.
trait Path {
    fn offer(&mut self, at_ns: u64);
    /// When the next packet that was offered comes out; None when none is under way.
    fn next_out(&mut self) -> Option<u64>;
}

/// Packets of one size; what happens is computed when they are offered, since nothing later changes it.
#[derive(Default)]
struct Hidden {
    out: VecDeque<u64>,
    free_ns: u64,
    /// Since when the queue has not been empty.
    busy_since_ns: u64,
}

impl Hidden {
    /// bit/s; the radio goes up and down, the carriers come one by one.
    fn rate(at_ns: u64, lasted_ns: u64) -> u64 {
        let radio = [12, 9, 6, 10, 14, 18, 15, 11][(at_ns / (400 * MS) % 8) as usize] * 1_000_000;
        let carriers = match lasted_ns / MS {
            0..=59 => 1,
            60..=139 => 2,
            _ => 3,
        };
        radio * carriers
    }
}

impl Path for Hidden {
    fn offer(&mut self, at_ns: u64) {
        let idle_ns = at_ns.saturating_sub(self.free_ns);
        let mut begin_ns = self.free_ns.max(at_ns);
        if self.free_ns == 0 || idle_ns > 15 * MS {
            begin_ns += GRANT;
        }
        if self.free_ns == 0 || idle_ns > 40 * MS {
            self.busy_since_ns = begin_ns;
        }
        self.free_ns = begin_ns + PACKET as u64 * 8 * S / Self::rate(begin_ns, begin_ns - self.busy_since_ns);
        self.out.push_back(self.free_ns + PROPAGATION);
    }

    fn next_out(&mut self) -> Option<u64> {
        self.out.pop_front()
    }
}

struct Replayed(Direction);

impl Path for Replayed {
    fn offer(&mut self, at_ns: u64) {
        self.0.offer(at_ns, &[0; PACKET]);
    }

    fn next_out(&mut self) -> Option<u64> {
        loop {
            let at_ns = self.0.next_event()?;
            self.0.advance(at_ns);
            if let Some(packet) = self.0.take_due(at_ns) {
                return Some(packet.due_ns);
            }
        }
    }
}

/// Fetch `packets` from `at_ns` on, by a window that doubles each round trip up to `most`; when the last has come.
fn fetch(path: &mut dyn Path, at_ns: u64, packets: u64, most: u64) -> u64 {
    let (mut sent, mut received, mut window, mut now_ns) = (0, 0, 10, at_ns + PROPAGATION);
    while received < packets {
        while sent < packets && sent - received < window {
            path.offer(now_ns);
            sent += 1;
        }
        let out_ns = path.next_out().expect("something is under way");
        received += 1;
        window = (window + 1).min(most);
        // The acknowledgement takes the way back; what it allows leaves no sooner than what left before.
        now_ns = now_ns.max(out_ns + PROPAGATION);
        if received == packets {
            return out_ns;
        }
    }
    now_ns
}

/// One modem sends a short train now and then; the time of its packets, repeated until the next train, and the least delay.
fn light_recording(for_ns: u64) -> (String, u64) {
    const TRAIN: u64 = 10;
    let (mut hidden, mut lines, mut least) = (Hidden::default(), Vec::new(), u64::MAX);
    for begin_ns in (S..for_ns).step_by(100 * MS as usize) {
        for _ in 0..TRAIN {
            hidden.offer(begin_ns);
        }
        let out: Vec<u64> = std::iter::from_fn(|| hidden.next_out()).collect();
        let apart = (out[out.len() - 1] - out[0]) / (TRAIN - 1);
        least = least.min(out[0] - apart - begin_ns);
        lines.extend((begin_ns..begin_ns + 100 * MS).step_by(apart as usize).map(|at| ((at - S) / MS).to_string()));
    }
    (lines.join("\n"), least)
}

/// The other has a queue that does not end, meanwhile.
fn heavy_recording(for_ns: u64) -> String {
    let (mut hidden, mut lines) = (Hidden::default(), Vec::new());
    loop {
        hidden.offer(S);
        let at = hidden.next_out().expect("it was offered") - PROPAGATION;
        if at >= for_ns {
            return lines.join("\n");
        }
        lines.push(((at - S) / MS).to_string());
    }
}

const LONG: u64 = 21 * S;

/// What was recorded, played: by load, or the heavy recording alone as before.
fn replayed(by_load: bool, memory_ns: u64) -> Replayed {
    let laid = |text: &str| Opportunities::new(Trace::parse(text).unwrap(), S, S);
    let (light, light_delay_ns) = light_recording(LONG);
    let light = by_load.then(|| Light::new(laid(&light), Some(light_delay_ns), memory_ns, S));
    let heavy = Some(laid(&heavy_recording(LONG)));
    Replayed(link(&[(0, values(1, PROPAGATION, 100_000_000))]).with_opportunities(heavy).with_light(light))
}

/// Seconds that pages take, each after the other: five rounds of objects with a pause to read each.
fn pages(path: &mut dyn Path) -> f64 {
    let (mut total_ns, mut now_ns) = (0, 2 * S);
    for page in 0..12 {
        let begin_ns = now_ns;
        for packets in [12, 60, 25 + 10 * (page % 4), 90, 15] {
            now_ns = fetch(path, now_ns, packets, 100) + 30 * MS;
        }
        total_ns += now_ns - begin_ns;
        now_ns += 700 * MS;
    }
    total_ns as f64 / 1e9
}

/// Seconds that segments of video take, one begun every second and a half.
fn segments(path: &mut dyn Path) -> f64 {
    let total_ns: u64 = (0..12).map(|i| (2 + i * 3 / 2) * S).map(|at_ns| fetch(path, at_ns, 500, 150) - at_ns).sum();
    total_ns as f64 / 1e9
}

#[test]
fn by_load_pages_and_segments_take_as_long_as_on_the_hidden_link_and_by_the_heavy_trace_alone_they_do_not() {
    for fetched in [pages, segments] {
        let real = fetched(&mut Hidden::default());
        let off = |made: &mut dyn Path| fetched(made) / real - 1.0;
        let by_load = off(&mut replayed(true, crate::options::LOAD_NS));
        let heavy = off(&mut replayed(false, MS));
        assert!(by_load.abs() < 0.05, "by load: {by_load:+.3} of {real} s");
        assert!(heavy < -0.1, "by the heavy trace alone: {heavy:+.3} of {real} s");
    }
}

#[test]
fn an_idle_link_is_the_light_trace_and_a_busy_one_the_heavy() {
    let laid = |text: &str| Opportunities::new(Trace::parse(text).unwrap(), 0, 0);
    let light = Light::new(laid("10\n"), Some(30 * MS), 50 * MS, 0);
    let mut link =
        link(&[(0, values(1, 5 * MS, 1_000_000_000))]).with_opportunities(Some(laid("1\n"))).with_light(Some(light));
    link.offer(S, &[0; 100]);
    // Ten in a hundred of the heavy trace's 1500 bytes would do after 5 ms of waiting; the delay is nearly the light one.
    link.advance(2 * S);
    let first = link.take_due(2 * S).unwrap();
    assert!((28 * MS..40 * MS).contains(&(first.due_ns - S)), "{}", first.due_ns - S);
    for _ in 0..1000 {
        link.offer(2 * S, &[0; 1500]);
    }
    link.advance(4 * S);
    let due: Vec<u64> = std::iter::from_fn(|| link.take_due(4 * S)).map(|p| p.due_ns).collect();
    assert_eq!(due.len(), 1000);
    assert_eq!(due[999] - due[900], 99 * MS, "one a millisecond, as the heavy trace says");
    assert!(due.windows(2).all(|pair| pair[0] <= pair[1]), "a falling delay overtakes nothing");
    assert_eq!(link.offered_bits().map(|bits| bits > 1000 * 12_000), Some(true));
}

#[test]
fn in_steps_of_any_size_the_same_packets_come_out() {
    let played = |step_ns: &mut dyn FnMut() -> u64| {
        let mut made = replayed(true, 60 * MS).0;
        let mut due = Vec::new();
        let mut now_ns = S;
        for burst in 0..40 {
            let at_ns = 2 * S + burst * 37 * MS;
            while now_ns < at_ns {
                now_ns = (now_ns + step_ns()).min(at_ns);
                made.advance(now_ns);
            }
            for _ in 0..burst {
                made.offer(at_ns, &[0; PACKET]);
            }
        }
        made.advance(20 * S);
        due.extend(std::iter::from_fn(|| made.take_due(20 * S)).map(|packet| packet.due_ns / 1000));
        due
    };
    let mut random = Random::new(8, 0);
    let (whole, parts) = (played(&mut || S), played(&mut || 1 + random.next() % (9 * MS)));
    assert_eq!(whole.len(), 780);
    // The load is a number with a comma: its last digits depend on the steps.
    assert!(whole.iter().zip(&parts).all(|(a, b)| a.abs_diff(*b) <= 1));
}
