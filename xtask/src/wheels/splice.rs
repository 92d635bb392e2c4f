//! A gzip file of many members: those that a wheel's own deflate streams become, and those of what is made here.

use super::layer::{Hashed, PIECE};
use super::zip::Entry;
use anyhow::Result;
use flate2::{Compress, Compression, Crc, FlushCompress, Status};
use std::fs::File;
use std::io::Write;

/// The beginning of a gzip member: deflate, no name, no time, from no system in particular.
const MEMBER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
/// The most that a stored block of a deflate stream holds.
const STORED: usize = 0xffff;

/// A gzip file of many members.
pub struct Splice {
    /// Where the members go.
    pub out: Hashed,
    deflate: Compress,
    /// What is made here and not in a member yet.
    plain: Vec<u8>,
}

impl Splice {
    /// An empty file.
    pub fn new(file: File) -> Splice {
        Splice {
            out: Hashed::new(file),
            deflate: Compress::new(Compression::best(), false),
            plain: Vec::new(),
        }
    }

    /// Bytes that are made here: they are gathered.
    pub fn plain(&mut self, bytes: &[u8]) -> Result<()> {
        self.plain.extend_from_slice(bytes);
        if self.plain.len() > PIECE { self.flush() } else { Ok(()) }
    }

    /// Writes what was gathered as a member of its own.
    pub fn flush(&mut self) -> Result<()> {
        if self.plain.is_empty() {
            return Ok(());
        }
        let mut packed = Vec::with_capacity(self.plain.len() + 64);
        self.deflate.reset();
        while self.deflate.compress_vec(
            &self.plain[self.deflate.total_in() as usize..],
            &mut packed,
            FlushCompress::Finish,
        )? != Status::StreamEnd
        {
            packed.reserve(self.plain.len());
        }
        let mut crc = Crc::new();
        crc.update(&self.plain);
        self.out.write_all(&MEMBER)?;
        self.out.write_all(&packed)?;
        self.trailer(crc.sum(), self.plain.len() as u64)?;
        self.plain.clear();
        Ok(())
    }

    /// Begins a member for an entry.
    pub fn begin(&mut self) -> Result<()> {
        self.flush()?;
        Ok(self.out.write_all(&MEMBER)?)
    }

    /// A piece of an entry; what is not deflated becomes stored blocks.
    pub fn piece(&mut self, bytes: &[u8], is_last: bool, is_deflated: bool) -> Result<()> {
        if is_deflated {
            return Ok(self.out.write_all(bytes)?);
        }
        for block in bytes.chunks(STORED) {
            self.stored(block, false)?;
        }
        if is_last { self.stored(&[], true) } else { Ok(()) }
    }

    /// RFC 1951, section 3.2.4.
    fn stored(&mut self, bytes: &[u8], is_last: bool) -> Result<()> {
        let length = bytes.len() as u16;
        self.out.write_all(&[u8::from(is_last)])?;
        self.out.write_all(&length.to_le_bytes())?;
        self.out.write_all(&(!length).to_le_bytes())?;
        Ok(self.out.write_all(bytes)?)
    }

    /// Ends the member of an entry.
    pub fn end(&mut self, entry: &Entry) -> Result<()> {
        self.trailer(entry.crc, entry.size)
    }

    fn trailer(&mut self, crc: u32, size: u64) -> Result<()> {
        self.out.write_all(&crc.to_le_bytes())?;
        // Modulo 2^32, as the format has it.
        Ok(self.out.write_all(&(size as u32).to_le_bytes())?)
    }
}
