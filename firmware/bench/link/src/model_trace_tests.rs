//! The model's behaviour where a packet-delivery trace gives the capacity.

use super::tests::{link, out, values, MS, S};
use super::*;
use crate::opportunities::Trace;

fn traced(text: &str, list: &[(u64, Values)]) -> Direction {
    let trace = Trace::parse(text).unwrap();
    link(list).with_opportunities(Some(Opportunities::new(trace, 0, 0)))
}

#[test]
fn an_opportunity_carries_1500_bytes_at_its_millisecond() {
    let mut link = traced("3\n3\n10\n", &[(0, values(1, 20 * MS, 100_000))]);
    for mark in 0..4 {
        link.offer(0, &[mark; 1500]);
    }
    assert_eq!(link.next_event(), Some(3 * MS));
    // Two at 3 ms, one at 10 ms, then the trace begins again: 13 ms.
    assert_eq!(out(&mut link, S), vec![(23 * MS, 0), (23 * MS, 1), (30 * MS, 2), (33 * MS, 3)]);
}

#[test]
fn bytes_are_what_counts() {
    let mut link = traced("1\n2\n3\n4\n", &[(0, values(1, 0, 100_000))]);
    for mark in 0..5 {
        link.offer(0, &[mark; 500]); // three of them fit in one
    }
    link.offer(0, &[9; 2000]); // begins in the second, 500 bytes of it; 1500 are left for the third
    assert_eq!(out(&mut link, S), vec![(MS, 0), (MS, 1), (MS, 2), (2 * MS, 3), (2 * MS, 4), (3 * MS, 9)]);
}

#[test]
fn opportunities_that_find_nothing_are_lost() {
    let mut link = traced("1\n", &[(0, values(1, 0, 100_000))]);
    link.advance(100 * MS);
    link.offer(100 * MS, &[1; 1500]);
    link.offer(100 * MS, &[2; 1500]);
    assert_eq!(out(&mut link, S), vec![(101 * MS, 1), (102 * MS, 2)]);
    assert_eq!(link.offered_bits(), Some(1000 * 12_000));
}

#[test]
fn under_overload_exactly_the_trace_passes() {
    let mut random = Random::new(4, 0);
    let mut at = 0;
    let times: Vec<u64> = (0..500)
        .map(|_| {
            at += random.next() % 9;
            at
        })
        .collect();
    let text: Vec<String> = times.iter().map(u64::to_string).collect();
    let mut link = traced(&text.join("\n"), &[(0, values(1, 0, 1_000_000_000))]);
    for _ in 0..1200 {
        link.offer(0, &[0; 1500]);
    }
    // In steps of any size, as a thread that wakes when it may.
    let mut due = Vec::new();
    let mut now = 0;
    while now < 2 * at * MS {
        now += 1 + random.next() % (70 * MS);
        due.extend(out(&mut link, now).into_iter().map(|(due_ns, _)| due_ns / MS));
    }
    let expected: Vec<u64> =
        times.iter().copied().chain(times.iter().map(|ms| ms + at)).skip_while(|&ms| ms == 0).collect();
    let count = due.len().min(expected.len()).min(990);
    assert!(count > 900);
    assert_eq!(due[..count], expected[..count]);
}

#[test]
fn a_rate_that_is_set_and_an_outage_hold_against_a_trace() {
    let mut link = traced("10\n", &[(0, values(1, 0, 100_000))]);
    link.offer(0, &[1; 1500]);
    link.change(0, Change::Rate(Some(12_000_000))); // 1 ms a packet
    assert_eq!(out(&mut link, 5 * MS), vec![(MS, 1)]);
    assert_eq!(link.offered_bits(), None);
    link.change(5 * MS, Change::Rate(None));
    link.offer(5 * MS, &[2; 1500]);
    link.change(6 * MS, Change::Outage(Some(true)));
    assert_eq!(link.next_event(), None);
    assert_eq!(out(&mut link, 35 * MS), vec![]); // 10, 20 and 30 are wasted
    link.change(35 * MS, Change::Outage(None));
    assert_eq!(link.next_event(), Some(40 * MS));
    assert_eq!(out(&mut link, S), vec![(40 * MS, 2)]);
}
