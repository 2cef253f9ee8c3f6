//! A file in memory, without reading it first.

use std::fs::File;
use std::io;
use std::path::Path;

use memmap2::{Advice, Mmap};

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
