//! The bytes of a capture: all at once from memory, or as they are decompressed.

use std::fs::File;
use std::io::{self, Error, ErrorKind, Read};
use std::path::Path;

use memmap2::{Advice, Mmap};
use zstd_safe::{DCtx, InBuffer, OutBuffer};

/// Bytes in order. What `look` gives may be shorter than asked only at the end.
pub trait Source {
    fn look(&mut self, count: usize) -> &[u8];
    fn skip(&mut self, count: usize);
    /// How many bytes were passed.
    fn offset(&self) -> u64;
    /// Whether the end came by a fault of the compression, or by the limit.
    fn fault(&self) -> Option<Fault>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Compression,
    Limit,
}

/// A file in memory.
pub struct Slice<'a> {
    left: &'a [u8],
    at: usize,
}

impl<'a> Slice<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Slice { left: bytes, at: 0 }
    }
}

impl Source for Slice<'_> {
    #[inline(always)]
    fn look(&mut self, count: usize) -> &[u8] {
        &self.left[..count.min(self.left.len())]
    }

    #[inline(always)]
    fn skip(&mut self, count: usize) {
        let count = count.min(self.left.len());
        self.left = &self.left[count..];
        self.at += count;
    }

    fn offset(&self) -> u64 {
        self.at as u64
    }

    fn fault(&self) -> Option<Fault> {
        None
    }
}

const ROOM: usize = 1 << 20;

/// What a decoder gives, in a window that moves.
pub struct Stream<R: Read> {
    reader: R,
    room: Vec<u8>,
    start: usize,
    end: usize,
    passed: u64,
    left: u64,
    over: bool,
    fault: Option<Fault>,
}

impl<R: Read> Stream<R> {
    /// Gives up after `most` bytes.
    pub fn new(reader: R, most: u64) -> Self {
        Stream { reader, room: vec![0; ROOM], start: 0, end: 0, passed: 0, left: most, over: false, fault: None }
    }

    #[cold]
    fn fill(&mut self, count: usize) {
        if self.room.len() - self.start < count {
            self.room.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            if self.room.len() < count {
                self.room.resize(count.next_power_of_two(), 0);
            }
        }
        while self.end - self.start < count && !self.over {
            let most = (self.room.len() - self.end).min(usize::try_from(self.left).unwrap_or(usize::MAX));
            if most == 0 {
                self.over = true;
                self.fault = Some(Fault::Limit);
                break;
            }
            match self.reader.read(&mut self.room[self.end..self.end + most]) {
                Ok(0) => self.over = true,
                Ok(read) => {
                    self.end += read.min(most);
                    self.left -= read.min(most) as u64;
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => {
                    self.over = true;
                    self.fault = Some(Fault::Compression);
                }
            }
        }
    }
}

impl<R: Read> Source for Stream<R> {
    #[inline]
    fn look(&mut self, count: usize) -> &[u8] {
        if self.end - self.start < count {
            self.fill(count);
        }
        &self.room[self.start..self.end.min(self.start.saturating_add(count))]
    }

    #[inline]
    fn skip(&mut self, count: usize) {
        let mut left = count;
        while left > 0 {
            let here = left.min(ROOM);
            let had = self.look(here).len();
            if had == 0 {
                return;
            }
            self.start += had;
            self.passed += had as u64;
            left -= had;
        }
    }

    fn offset(&self) -> u64 {
        self.passed
    }

    fn fault(&self) -> Option<Fault> {
        self.fault
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Decoding of zstd (RFC 8878) by its own library, frame after frame, with its default bound of 128 MiB on a frame's window.

pub struct Reader<'a> {
    context: DCtx<'a>,
    input: InBuffer<'a>,
    /// A frame is not over.
    inside: bool,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { context: DCtx::create(), input: InBuffer::around(bytes), inside: false }
    }
}

impl Read for Reader<'_> {
    fn read(&mut self, room: &mut [u8]) -> std::io::Result<usize> {
        if room.is_empty() {
            return Ok(0);
        }
        loop {
            let over = self.input.pos() >= self.input.src.len();
            let before = self.input.pos();
            let mut output = OutBuffer::around(&mut *room);
            let left = self
                .context
                .decompress_stream(&mut output, &mut self.input)
                .map_err(|code| Error::new(ErrorKind::InvalidData, zstd_safe::get_error_name(code)))?;
            let made = output.pos();
            self.inside = left != 0 && (self.inside || self.input.pos() > before || made > 0);
            if made > 0 {
                return Ok(made);
            }
            if over {
                let cut = Error::new(ErrorKind::UnexpectedEof, "the frame is not whole");
                return if self.inside { Err(cut) } else { Ok(0) };
            }
            if self.input.pos() == before {
                return Err(Error::new(ErrorKind::InvalidData, "no progress"));
            }
        }
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// A file in memory, without reading it first.

/// None: the file is empty, which cannot be mapped.
pub fn open(path: &Path) -> io::Result<Option<Mmap>> {
    let file = File::open(path)?;
    let told = file.metadata()?;
    if !told.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    if told.len() == 0 {
        return Ok(None);
    }
    // SAFETY: a mapped file must not be cut short while it is read, which nothing can rule out for a file of others. Captures are written once
    // and renamed when they are whole; who analyses one that is being cut gets SIGBUS, as with every program that maps files.
    #[allow(unsafe_code)]
    let mapped = unsafe { Mmap::map(&file) }?;
    mapped.advise(Advice::Sequential)?;
    Ok(Some(mapped))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_gives_what_the_slice_gives() {
        let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
        let (mut slice, mut stream) = (Slice::new(&bytes), Stream::new(&bytes[..], u64::MAX));
        for count in [1, 16, 70_000, 1_500_000, 3, 1_200_000, 500_000, 9] {
            assert_eq!(slice.look(count), stream.look(count));
            slice.skip(count);
            stream.skip(count);
            assert_eq!(slice.offset(), stream.offset());
        }
        assert_eq!(stream.look(1).len(), 0);
        assert_eq!(stream.fault(), None);
    }

    #[test]
    fn a_stream_stops_at_its_limit() {
        let mut stream = Stream::new(std::io::repeat(7), 100);
        assert_eq!(stream.look(200).len(), 100);
        assert_eq!(stream.fault(), Some(Fault::Limit));
    }
}
