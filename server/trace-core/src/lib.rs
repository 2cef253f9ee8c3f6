//! The native pass over a capture; docs/reference/captures.md says what it gives.

#![deny(unsafe_code)]
#![cfg_attr(not(feature = "python"), allow(dead_code))]

mod account;
mod alike;
mod assemble;
mod bins;
mod capture;
mod columns;
mod connection;
mod copies;
mod data_level;
mod echoes;
mod engine;
mod events;
mod fields;
mod flow;
mod frame;
mod identities;
mod limits;
mod mapped;
mod mapping;
mod numbers;
mod opening;
mod options;
mod out;
mod pcap;
mod pcapng;
mod problems;
#[cfg(feature = "python")]
mod python;
mod ranges;
mod rare;
mod ring;
mod samples;
mod segment;
mod sha;
mod sink;
mod source;
mod table;
mod tables;
mod together;
mod unacknowledged;
mod usual;
mod verdict;
mod waiting;
mod zstandard;
