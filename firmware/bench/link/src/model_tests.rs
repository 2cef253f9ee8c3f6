//! The model's behaviour, in its own time.

use super::*;
use crate::random::threshold;

pub const MS: u64 = 1_000_000;
pub const S: u64 = 1_000 * MS;

pub fn values(rate: u64, delay_ns: u64, buffer: u64) -> Values {
    Values { rate, delay_ns, buffer, loss: 0, outage: false, queue_dropped: false }
}

fn steps(list: &[(u64, Values)]) -> Vec<Step> {
    list.iter().map(|&(at_ns, values)| Step { at_ns, values }).collect()
}

pub fn link(list: &[(u64, Values)]) -> Direction {
    Direction::new(steps(list), 0, Random::new(1, 0))
}

/// Everything that comes out by `until`: (due_ns, first byte).
pub fn out(link: &mut Direction, until: u64) -> Vec<(u64, u8)> {
    link.advance(until);
    std::iter::from_fn(|| link.take_due(until)).map(|p| (p.due_ns, p.bytes[0])).collect()
}

#[test]
fn a_packet_takes_its_bits_over_the_rate_and_the_delay() {
    let mut link = link(&[(0, values(8_000_000, 20 * MS, 10_000))]); // 1000 bytes: 1 ms
    link.offer(5 * MS, &[7; 1000]);
    assert_eq!(link.next_event(), Some(26 * MS));
    assert_eq!(out(&mut link, 26 * MS - 1), vec![]);
    assert_eq!(out(&mut link, 26 * MS), vec![(26 * MS, 7)]);
    assert_eq!(link.next_event(), None);
}

#[test]
fn a_change_of_capacity_in_the_middle_of_a_packet_is_integrated() {
    // 8000 bits: 1 ms at 4 Mbit/s gives 4000, the other 4000 at 1 Mbit/s take 4 ms.
    let mut link = link(&[(0, values(4_000_000, 0, 10_000)), (MS, values(1_000_000, 0, 10_000))]);
    link.offer(0, &[1; 1000]);
    assert_eq!(link.next_event(), Some(5 * MS));
    assert_eq!(out(&mut link, S), vec![(5 * MS, 1)]);
}

#[test]
fn a_falling_capacity_makes_the_queue_grow() {
    let mut link = link(&[(0, values(8_000_000, 0, 1_000_000)), (S, values(2_000_000, 0, 1_000_000))]);
    for i in 0..2000 {
        link.offer(i * MS, &[0; 1000]); // 8 Mbit/s all the time
    }
    link.advance(2 * S);
    let expected = 750_000; // 6 Mbit/s too much for one second
    assert!(link.queue_bytes().abs_diff(expected) <= 2000, "{}", link.queue_bytes());
}

#[test]
fn the_buffer_is_in_bytes_and_drops_at_the_tail() {
    let mut link = link(&[(0, values(8_000, 0, 2500))]);
    for i in 0..4 {
        link.offer(0, &[i; 1000]);
    }
    link.offer(0, &[9; 500]); // the small one still fits
    assert_eq!((link.queue_bytes(), link.counts().dropped_buffer), (2500, 2));
    let order: Vec<u8> = out(&mut link, 100 * S).into_iter().map(|(_, mark)| mark).collect();
    assert_eq!(order, [0, 1, 9]);
}

#[test]
fn an_empty_queue_takes_a_packet_larger_than_the_buffer() {
    let mut link = link(&[(0, values(8_000_000, 0, 10))]);
    link.offer(0, &[1; 1000]);
    link.offer(0, &[2; 1000]);
    assert_eq!(out(&mut link, S), vec![(MS, 1)]);
    assert_eq!(link.counts().dropped_buffer, 1);
}

#[test]
fn an_outage_keeps_the_queue_and_goes_on_where_it_was() {
    let on = values(8_000_000, 0, 10_000);
    let off = Values { outage: true, ..on };
    let mut link = link(&[(0, on), (MS / 2, off), (100 * MS, on)]);
    link.offer(0, &[1; 1000]);
    link.offer(50 * MS, &[2; 1000]);
    assert_eq!(out(&mut link, S), vec![(100 * MS + MS / 2, 1), (101 * MS + MS / 2, 2)]);
    assert_eq!(link.counts().dropped_outage, 0);
}

#[test]
fn an_outage_with_a_dropped_queue_drops_what_waits_and_what_comes() {
    let on = values(8_000_000, 30 * MS, 10_000);
    let off = Values { outage: true, queue_dropped: true, ..on };
    let mut link = link(&[(0, on), (2 * MS + 1, off), (100 * MS, on)]);
    for i in 0..5 {
        link.offer(0, &[i; 1000]); // two are served before the outage and are under way
    }
    link.offer(50 * MS, &[8; 1000]);
    link.offer(100 * MS, &[9; 1000]);
    assert_eq!(out(&mut link, S), vec![(31 * MS, 0), (32 * MS, 1), (131 * MS, 9)]);
    assert_eq!(link.counts().dropped_outage, 4);
}

#[test]
fn an_outage_that_turns_worse_drops_the_queue_then() {
    let on = values(8_000_000, 0, 10_000);
    let kept = Values { outage: true, ..on };
    let dropped = Values { queue_dropped: true, ..kept };
    let mut link = link(&[(0, on), (MS, kept), (2 * MS, dropped), (3 * MS, on)]);
    link.offer(MS, &[1; 1000]);
    assert_eq!(out(&mut link, S), vec![]);
    assert_eq!((link.counts().dropped_outage, link.queue_bytes()), (1, 0));
}

#[test]
fn a_shorter_delay_does_not_reorder() {
    let mut link = link(&[(0, values(8_000_000, 50 * MS, 10_000)), (2 * MS, values(8_000_000, 10 * MS, 10_000))]);
    link.offer(0, &[1; 1000]);
    link.offer(5 * MS, &[2; 1000]);
    link.offer(60 * MS, &[3; 1000]);
    assert_eq!(out(&mut link, S), vec![(51 * MS, 1), (51 * MS, 2), (71 * MS, 3)]);
}

#[test]
fn a_setting_holds_until_it_is_cleared() {
    let mut link = link(&[(0, values(8_000_000, 0, 10_000)), (10 * MS, values(4_000_000, 0, 10_000))]);
    link.change(0, Change::Rate(Some(1_000_000)));
    link.offer(0, &[1; 1000]);
    link.offer(20 * MS, &[2; 1000]);
    assert_eq!(link.next_event(), Some(8 * MS));
    link.advance(28 * MS);
    link.change(28 * MS, Change::Rate(None));
    link.offer(30 * MS, &[3; 1000]);
    assert_eq!(out(&mut link, S), vec![(8 * MS, 1), (28 * MS, 2), (32 * MS, 3)]);
}

#[test]
fn a_setting_of_outage_and_dropped_queue_works_in_either_order() {
    for order in [
        [Change::Outage(Some(true)), Change::QueueDropped(Some(true))],
        [Change::QueueDropped(Some(true)), Change::Outage(Some(true))],
    ] {
        let mut link = link(&[(0, values(8_000_000, 0, 10_000))]);
        link.offer(0, &[1; 1000]);
        for setting in order {
            link.change(0, setting);
        }
        link.offer(1, &[2; 1000]);
        assert_eq!((link.counts().dropped_outage, link.queue_bytes()), (2, 0));
    }
}

#[test]
fn lost_packets_take_no_capacity() {
    let mut link = link(&[(0, Values { loss: threshold(1.0), ..values(8_000_000, 0, 10_000) })]);
    link.offer(0, &[1; 1000]);
    assert_eq!((link.queue_bytes(), link.counts().dropped_loss, link.next_event()), (0, 1, None));
}

#[test]
fn before_the_first_step_its_values_hold_and_after_the_last_too() {
    let mut link = link(&[(S, values(8_000_000, 0, 10_000))]);
    link.offer(0, &[1; 1000]);
    link.offer(1000 * S, &[2; 1000]);
    assert_eq!(out(&mut link, 2000 * S), vec![(MS, 1), (1000 * S + MS, 2)]);
}

/// Random schedules and traffic: how the time is cut into wake-ups changes nothing, and the books balance.
#[test]
fn how_often_the_thread_wakes_changes_nothing() {
    let mut random = Random::new(99, 0);
    for round in 0..300 {
        let mut at = 0;
        let mut list = Vec::new();
        for _ in 0..1 + random.next() % 20 {
            list.push((
                at,
                Values {
                    rate: random.next() % 20_000_000,
                    delay_ns: random.next() % (40 * MS),
                    buffer: random.next() % 60_000,
                    loss: threshold((random.next() % 3) as f64 * 0.05),
                    outage: random.next() % 5 == 0,
                    queue_dropped: random.next() % 2 == 0,
                },
            ));
            at += 1 + random.next() % (100 * MS);
        }
        let mut arrivals = Vec::new();
        let mut when = 0;
        for _ in 0..random.next() % 400 {
            when += random.next() % (4 * MS);
            arrivals.push((when, 40 + (random.next() % 1460) as usize));
        }
        let lazy = play(&list, &arrivals, false, round);
        let eager = play(&list, &arrivals, true, round);
        assert_eq!(lazy, eager, "round {round}");
        let (written, waiting, counts) = lazy;
        let lost = counts.dropped_buffer + counts.dropped_loss + counts.dropped_outage;
        assert_eq!(counts.offered_packets, written.len() as u64 + waiting + lost);
        assert!(written.windows(2).all(|pair| pair[0].0 <= pair[1].0), "out of order in round {round}");
    }
}

type Played = (Vec<(u64, usize)>, u64, Counts);

fn play(list: &[(u64, Values)], arrivals: &[(u64, usize)], eager: bool, seed: u64) -> Played {
    let mut link = Direction::new(steps(list), 0, Random::new(seed, 1));
    let mut written = Vec::new();
    for &(at, size) in arrivals {
        // The eager one wakes at each event and once more in between; each must find exactly what is due then.
        while let Some(event) = link.next_event().filter(|&event| eager && event < at) {
            let middle = link.now_ns + event.saturating_sub(link.now_ns) / 2;
            link.advance(middle);
            link.advance(event);
            written.extend(std::iter::from_fn(|| link.take_due(event)).map(|p| (p.due_ns, p.bytes.len())));
        }
        link.offer(at, &vec![0; size]);
    }
    link.advance(3600 * S);
    written.extend(std::iter::from_fn(|| link.take_due(3600 * S)).map(|p| (p.due_ns, p.bytes.len())));
    (written, link.queue.len() as u64, link.counts())
}

/// A backlogged queue lets through exactly the integral of the capacity, to the packet.
#[test]
fn a_full_queue_gets_exactly_the_capacity() {
    let rate = 33_333_333;
    let mut link = link(&[(0, values(rate, 0, 1_000_000_000))]);
    for _ in 0..30_000 {
        link.offer(0, &[0; 1500]);
    }
    link.advance(10 * S);
    let bits = (30_000 * 1500 - link.queue_bytes()) * 8;
    let expected = rate * 10;
    assert!(bits <= expected && expected - bits < 12_000, "{bits} of {expected}");
}
