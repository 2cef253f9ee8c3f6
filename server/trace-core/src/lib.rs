//! The native pass over a capture; docs/reference/captures.md says what it gives.

#![deny(unsafe_code)]
#![cfg_attr(not(feature = "python"), allow(dead_code))]

mod account;
mod bins;
mod capture;
mod connection;
mod data_level;
mod engine;
mod flow;
mod frame;
mod opening;
mod options;
mod out;
#[cfg(feature = "python")]
mod python;
mod ranges;
mod rtt;
mod segment;
mod source;
mod tables;
