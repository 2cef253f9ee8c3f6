//! A capture by its first bytes: which compression, which format.

use crate::problems::Kind;
use crate::sink::Sink;
use crate::source::{Slice, Source, Stream};
use crate::{pcap, pcapng};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Form {
    pub format: Option<&'static str>,
    pub compression: Option<&'static str>,
    pub bytes: u64,
}

/// Reads all of it.
pub fn read<K: Sink>(bytes: &[u8], sink: &mut K) -> Form {
    let most = sink.most_bytes();
    match bytes {
        [0x1f, 0x8b, ..] => {
            let stream = Stream::new(flate2::bufread::MultiGzDecoder::new(bytes), most);
            Form { compression: Some("gzip"), ..uncompressed(stream, sink) }
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
            let stream = Stream::new(crate::zstandard::Reader::new(bytes), most);
            Form { compression: Some("zstd"), ..uncompressed(stream, sink) }
        }
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => unread(Kind::CompressedByXz, sink),
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => unread(Kind::CompressedByBzip2, sink),
        _ => uncompressed(Slice::new(bytes), sink),
    }
}

fn unread<K: Sink>(kind: Kind, sink: &mut K) -> Form {
    sink.begin();
    sink.problem_here(kind);
    Form::default()
}

fn uncompressed<S: Source, K: Sink>(mut source: S, sink: &mut K) -> Form {
    let first = source.look(24);
    let header = pcap::header(first);
    let next_generation = pcapng::is(first);
    let empty = first.is_empty();
    sink.begin();
    let format = if let Some(header) = header {
        sink.at(24);
        pcap::read(&mut source, header, sink);
        Some("pcap")
    } else if next_generation {
        pcapng::read(&mut source, sink);
        Some("pcapng")
    } else {
        if source.fault().is_some() {
            sink.ended(&source, !empty);
        }
        sink.begin();
        sink.problem_here(Kind::NotACapture);
        None
    };
    Form { format, compression: None, bytes: source.offset() }
}

