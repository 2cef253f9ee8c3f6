//! What the ends said that is not data.

/// Codes of the column `kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Syn,
    SynAck,
    Established,
    JoinSyn,
    JoinSynAck,
    JoinEstablished,
    MpPrio,
    AddAddr,
    AddAddrEcho,
    RemoveAddr,
    MpFail,
    FastClose,
    ResetReason,
    Rst,
    Fin,
    DataFin,
    FallbackNoOption,
    FallbackInfiniteMapping,
    FallbackNoMapping,
    Likeness,
}

/// Names of the kinds, in order of their codes.
pub const NAMES: [&str; 20] = [
    "syn",
    "syn_ack",
    "established",
    "join_syn",
    "join_syn_ack",
    "join_established",
    "mp_prio",
    "add_addr",
    "add_addr_echo",
    "remove_addr",
    "mp_fail",
    "fastclose",
    "reset_reason",
    "rst",
    "fin",
    "data_fin",
    "fallback_no_option",
    "fallback_infinite_mapping",
    "fallback_no_mapping",
    "likeness",
];

#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub time: i64,
    pub packet: u64,
    pub subflow: u32,
    /// Of the subflow, who said it.
    pub side: u8,
    pub kind: Kind,
    pub value: Option<i64>,
    pub address: Option<([u8; 16], Option<u16>)>,
}
