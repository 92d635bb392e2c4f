//! A tree as a layer: a tar, compressed, with the two digests that name it.
//!
//! A zip entry's deflate stream, its CRC and its size are what a gzip member is made of (RFC 1952, section 2.2: a file may
//! have many). So a wheel's bytes go into the layer as they are; they are unpacked only to be checked and hashed.

use super::header::{BLOCK, headers};
use super::splice::Splice;
use super::tree::{Content, Node, Tree};
use super::zip::{Archive, Entry};
use crate::digest;
use crate::interrupt;
use anyhow::{Context, Result};
use flate2::{Crc, Decompress, FlushDecompress, Status};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;

/// How the bytes of a layer are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Codec {
    /// The wheels' own deflate streams as gzip members.
    Splice,
    /// zstd at this level.
    Zstd(i32),
}

/// What a finished layer is known by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// Digest of the file.
    pub digest: String,
    /// Digest of the tar: the same whatever compresses it.
    pub diff_id: String,
    /// Bytes of the file.
    pub size: u64,
    /// Bytes of the tar.
    pub unpacked: u64,
}

impl Codec {
    /// The media type of a layer.
    pub fn media_type(self) -> &'static str {
        match self {
            Codec::Splice => "application/vnd.oci.image.layer.v1.tar+gzip",
            Codec::Zstd(_) => "application/vnd.oci.image.layer.v1.tar+zstd",
        }
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Codec::Splice => f.write_str("splice"),
            Codec::Zstd(level) => write!(f, "zstd-{level}"),
        }
    }
}

/// Bytes that are read, unpacked or gathered at once.
pub const PIECE: usize = 1 << 18;

/// Writes a tree to a file, synced to the disk.
///
/// Errors: `E_WHEEL` with the wheel and the entry whose bytes are not what the wheel's directory tells.
pub fn write(tree: &Tree, codec: Codec, to: &Path) -> Result<Written> {
    let mut layer = Layer::create(codec, to)?;
    for (path, node) in tree {
        layer.node(path, node)?;
    }
    // Two empty blocks end a tar.
    layer.plain(&[0; 2 * BLOCK])?;
    layer.finish()
}

/// Compresses a tar that is there already to a file, synced to the disk.
pub fn pack(mut tar: impl Read, codec: Codec, to: &Path) -> Result<Written> {
    let mut layer = Layer::create(codec, to)?;
    let mut piece = vec![0; PIECE];
    loop {
        match tar.read(&mut piece)? {
            0 => return layer.finish(),
            n => layer.plain(&piece[..n])?,
        }
    }
}

fn packer(codec: Codec, to: &Path) -> Result<Packer> {
    let file = File::create_new(to).with_context(|| format!("creating {}", to.display()))?;
    Ok(match codec {
        Codec::Splice => Packer::Splice(Box::new(Splice::new(file))),
        Codec::Zstd(level) => {
            let mut encoder = zstd::Encoder::new(Hashed::new(file), level)?;
            // One thread or more give the same bytes; none would give others.
            encoder.multithread(threads())?;
            Packer::Zstd(Box::new(encoder))
        }
    })
}

fn threads() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u32)
}

/// A layer under way.
struct Layer {
    packer: Packer,
    diff: Sha256,
    unpacked: u64,
}

enum Packer {
    Splice(Box<Splice>),
    Zstd(Box<zstd::Encoder<'static, Hashed>>),
}

impl Layer {
    fn create(codec: Codec, to: &Path) -> Result<Layer> {
        Ok(Layer { packer: packer(codec, to)?, diff: Sha256::new(), unpacked: 0 })
    }

    fn node(&mut self, path: &Path, node: &Node) -> Result<()> {
        for header in headers(path, node)? {
            self.plain(&header)?;
        }
        match &node.content {
            Content::Made(bytes) => self.plain(bytes)?,
            Content::Packed(archive, entry) => self.packed(archive, entry)?,
            Content::Link(_) | Content::Folder => {}
        }
        let rest = node.size() as usize % BLOCK;
        self.plain(&[0; BLOCK][rest..][..if rest == 0 { 0 } else { BLOCK - rest }])
    }

    /// Bytes that are made here.
    fn plain(&mut self, bytes: &[u8]) -> Result<()> {
        self.hash(bytes);
        match &mut self.packer {
            Packer::Splice(splice) => splice.plain(bytes),
            Packer::Zstd(encoder) => Ok(encoder.write_all(bytes)?),
        }
    }

    fn hash(&mut self, bytes: &[u8]) {
        self.diff.update(bytes);
        self.unpacked += bytes.len() as u64;
    }

    /// An entry of a wheel, unpacked once to check and hash it.
    fn packed(&mut self, archive: &Archive, entry: &Entry) -> Result<()> {
        let mut unpacker = Unpacker::new(entry.is_deflated);
        let mut packed = archive.packed(entry);
        let (mut piece, mut crc, mut size) = (vec![0; PIECE], Crc::new(), 0);
        if let Packer::Splice(splice) = &mut self.packer {
            splice.begin()?;
        }
        loop {
            interrupt::check()?;
            let n = packed.read(&mut piece)?;
            if let Packer::Splice(splice) = &mut self.packer {
                splice.piece(&piece[..n], n == 0, entry.is_deflated)?;
            }
            if n == 0 {
                break;
            }
            let whole = unpacker.feed(&piece[..n], |bytes| {
                size += bytes.len() as u64;
                anyhow::ensure!(size <= entry.size, "too long");
                crc.update(bytes);
                self.hash(bytes);
                match &mut self.packer {
                    Packer::Splice(_) => Ok(()),
                    Packer::Zstd(encoder) => Ok(encoder.write_all(bytes)?),
                }
            });
            if whole.is_err() {
                break;
            }
        }
        if (crc.sum(), size, unpacker.is_done()) != (entry.crc, entry.size, true) {
            return Err(archive.fault(entry, "its bytes are not those that the archive's directory tells of"));
        }
        match &mut self.packer {
            Packer::Splice(splice) => splice.end(entry),
            Packer::Zstd(_) => Ok(()),
        }
    }

    fn finish(self) -> Result<Written> {
        let out = match self.packer {
            Packer::Splice(mut splice) => {
                splice.flush()?;
                splice.out
            }
            Packer::Zstd(encoder) => encoder.finish()?,
        };
        let (digest, size) = out.finish()?;
        Ok(Written { digest, diff_id: digest::name(self.diff), size, unpacked: self.unpacked })
    }
}

/// A file that knows its digest and size.
pub struct Hashed {
    file: BufWriter<File>,
    hash: Sha256,
    size: u64,
}

impl Hashed {
    /// Nothing is written yet.
    pub fn new(file: File) -> Hashed {
        Hashed { file: BufWriter::with_capacity(PIECE, file), hash: Sha256::new(), size: 0 }
    }

    fn finish(self) -> Result<(String, u64)> {
        // The error is the system's own: a full disk is to be known as that.
        let file = self.file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        file.sync_all()?;
        Ok((digest::name(self.hash), self.size))
    }
}

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.write_all(bytes)?;
        self.hash.update(bytes);
        self.size += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

/// Unpacks an entry piece by piece.
struct Unpacker {
    inflate: Option<Decompress>,
    buffer: Vec<u8>,
    ended: bool,
}

impl Unpacker {
    fn new(is_deflated: bool) -> Unpacker {
        let inflate = is_deflated.then(|| Decompress::new(false));
        Unpacker { ended: inflate.is_none(), inflate, buffer: vec![0; PIECE] }
    }

    /// Whether the stream has come to its end, and nothing was behind it.
    fn is_done(&self) -> bool {
        self.ended
    }

    fn feed(&mut self, packed: &[u8], mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let Some(inflate) = &mut self.inflate else {
            return each(packed);
        };
        let mut left = packed;
        loop {
            anyhow::ensure!(!self.ended || left.is_empty(), "something stands behind the stream");
            let (read, made) = (inflate.total_in(), inflate.total_out());
            let status = inflate.decompress(left, &mut self.buffer, FlushDecompress::None)?;
            let (read, made) = (inflate.total_in() - read, inflate.total_out() - made);
            left = &left[read as usize..];
            each(&self.buffer[..made as usize])?;
            self.ended |= status == Status::StreamEnd;
            // A full buffer may hide more.
            if self.ended && left.is_empty() || read == 0 && made == 0 {
                return Ok(());
            }
        }
    }
}
