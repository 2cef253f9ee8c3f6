//! Decoding of zstd (RFC 8878) by its own library, frame after frame, with its default bound of 128 MiB on a frame's window.

use std::io::{Error, ErrorKind, Read};

use zstd_safe::{DCtx, InBuffer, OutBuffer};

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
