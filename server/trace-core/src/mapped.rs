//! A file in memory, without reading it first.

use std::fs::File;
use std::io;
use std::path::Path;

use memmap2::{Advice, Mmap, MmapOptions};

/// Up to here all pages are asked for at once.
const AT_ONCE: u64 = 1 << 28;

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
    let mut options = MmapOptions::new();
    if told.len() <= AT_ONCE {
        options.populate();
    }
    // SAFETY: a mapped file must not be cut short while it is read, which nothing can rule out for a file of others. Captures are written once
    // and renamed when they are whole; who analyses one that is being cut gets SIGBUS, as with every program that maps files.
    #[allow(unsafe_code)]
    let mapped = unsafe { options.map(&file) }?;
    if told.len() > AT_ONCE {
        mapped.advise(Advice::Sequential)?;
    }
    Ok(Some(mapped))
}
