//! A wheel as the zip archive that it is: what is in it and where. What no wheel may hold is refused here.

use crate::digest;
use crate::problem::{Id, Problem, Refusal};
use anyhow::{Context, Result};
use rawzip::{CompressionMethod, RECOMMENDED_BUFFER_SIZE, ZipArchive, ZipFileHeaderRecord};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// An open wheel.
#[derive(Debug)]
pub struct Archive {
    /// Its file name.
    pub name: String,
    /// Its files in the archive's order; folders are left out.
    pub entries: Vec<Entry>,
    file: File,
}

/// A file in a wheel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its path, with `/` between its parts: never absolute, and nowhere above the wheel.
    pub name: String,
    /// Where its bytes begin in the archive.
    pub start: u64,
    /// How many bytes it has there.
    pub packed: u64,
    /// How many bytes it has unpacked.
    pub size: u64,
    /// CRC-32 of the unpacked bytes.
    pub crc: u32,
    /// Whether its bytes are a deflate stream; otherwise they are the file itself.
    pub is_deflated: bool,
    /// Whether somebody may execute it.
    pub is_executable: bool,
    /// Seconds since 1970, the archive's clock taken for UTC.
    pub modified: u64,
}

/// The file types of a Unix mode, and those that a wheel may hold.
const TYPE: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;

impl Archive {
    /// Opens a wheel and reads its directory.
    ///
    /// Errors: `E_WHEEL` with the wheel and the entry for a path that leaves the wheel, a link or a device, a name that is
    /// there twice or that its two headers tell differently, encryption, a method that is not deflate, or damage.
    pub fn open(path: &Path) -> Result<Archive> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let open = || File::open(path).with_context(|| format!("opening {}", path.display()));
        let entries = read(open()?).map_err(|fault| fault.of(&name))?;
        Ok(Archive { name, entries, file: open()? })
    }

    /// The bytes of an entry as they are in the archive.
    pub fn packed(&self, entry: &Entry) -> Packed<'_> {
        Packed { file: &self.file, at: entry.start, left: entry.packed }
    }

    /// A whole entry, unpacked and checked; only for what is small.
    pub fn read(&self, entry: &Entry) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut crc = flate2::Crc::new();
        let limit = entry.size + 1;
        let read = match entry.is_deflated {
            true => {
                let packed = std::io::BufReader::new(self.packed(entry));
                flate2::bufread::DeflateDecoder::new(packed).take(limit).read_to_end(&mut bytes)
            }
            false => self.packed(entry).take(limit).read_to_end(&mut bytes),
        };
        crc.update(&bytes);
        match read {
            Ok(_) if bytes.len() as u64 == entry.size && crc.sum() == entry.crc => Ok(bytes),
            _ => Err(self.fault(entry, "its bytes are not those that the archive's directory tells of")),
        }
    }

    /// Digest of an entry's unpacked bytes.
    pub fn digest(&self, entry: &Entry) -> Result<String> {
        let packed = std::io::BufReader::with_capacity(1 << 18, self.packed(entry));
        match entry.is_deflated {
            true => digest::of_reader(flate2::bufread::DeflateDecoder::new(packed)),
            false => digest::of_reader(packed),
        }
    }

    /// Whether an entry's unpacked bytes begin with these.
    pub fn starts_with(&self, entry: &Entry, start: &[u8]) -> Result<bool> {
        let packed = std::io::BufReader::new(self.packed(entry));
        let mut found = Vec::new();
        let limit = start.len() as u64;
        match entry.is_deflated {
            true => flate2::bufread::DeflateDecoder::new(packed).take(limit).read_to_end(&mut found)?,
            false => packed.take(limit).read_to_end(&mut found)?,
        };
        Ok(found == start)
    }

    /// A refusal of this wheel because of one of its entries.
    pub fn fault(&self, entry: &Entry, what: &str) -> anyhow::Error {
        Fault { entry: entry.name.clone(), what: what.to_owned() }.of(&self.name)
    }
}

/// The bytes of an entry as they are in the archive. It reads at its own place: one archive serves several threads.
pub struct Packed<'a> {
    file: &'a File,
    at: u64,
    left: u64,
}

impl Read for Packed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let n = self.file.read_at(&mut buffer[..most], self.at)?;
        if n == 0 && most > 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        self.at += n as u64;
        self.left -= n as u64;
        Ok(n)
    }
}

/// What is wrong with an archive, and with which of its entries.
#[derive(Debug)]
struct Fault {
    entry: String,
    what: String,
}

impl Fault {
    fn new(entry: impl Into<String>, what: impl Into<String>) -> Fault {
        Fault { entry: entry.into(), what: what.into() }
    }

    fn of(self, wheel: &str) -> anyhow::Error {
        let place = if self.entry.is_empty() { wheel.to_owned() } else { format!("{wheel}: {}", self.entry) };
        let cure =
            "take another version of the package, or leave it out; report it to whoever made the wheel";
        Refusal::from(Problem::new(Id::Wheel, place, self.what, cure)).into()
    }
}

fn read(file: File) -> Result<Vec<Entry>, Fault> {
    let damaged = |error: rawzip::Error| Fault::new("", format!("it is no whole zip archive: {error}"));
    let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
    let archive = ZipArchive::from_file(file, &mut buffer).map_err(damaged)?;
    let (mut found, mut names) = (Vec::new(), BTreeSet::new());
    let mut records = archive.entries(&mut buffer);
    let mut count = 0;
    let mut local = vec![0; RECOMMENDED_BUFFER_SIZE];
    while let Some(record) = records.next_entry().map_err(damaged)? {
        count += 1;
        let raw = record.file_path().as_bytes().to_vec();
        let name = String::from_utf8(raw.clone());
        let name = name.map_err(|error| {
            Fault::new(String::from_utf8_lossy(error.as_bytes()), "its name is not UTF-8")
        })?;
        check_path(&name).map_err(|what| Fault::new(&name, what))?;
        if !names.insert(name.trim_end_matches('/').to_owned()) {
            return Err(Fault::new(&name, "it is there twice"));
        }
        check_kind(&record).map_err(|what| Fault::new(&name, what))?;
        let at = archive.get_entry(record.wayfinder()).map_err(damaged)?;
        let header = at.local_header(&mut local).map_err(damaged)?;
        if header.file_path().as_bytes() != raw {
            return Err(Fault::new(&name, "the header before its bytes has another name"));
        }
        if !record.is_dir() {
            found.push(entry(name, &record, at.compressed_data_range()));
        }
    }
    if count != archive.entries_hint() {
        return Err(Fault::new("", "it has another number of entries than it tells"));
    }
    match overlapping(&found) {
        Some(name) => Err(Fault::new(name, "its bytes are another entry's too")),
        None => Ok(found),
    }
}

/// An entry whose bytes are also another's: a bomb is made that way.
fn overlapping(entries: &[Entry]) -> Option<&str> {
    let mut all: Vec<&Entry> = entries.iter().collect();
    all.sort_unstable_by_key(|entry| entry.start);
    all.windows(2)
        .find(|pair| pair[0].start + pair[0].packed > pair[1].start)
        .map(|pair| pair[1].name.as_str())
}

fn entry(name: String, record: &ZipFileHeaderRecord, (start, end): (u64, u64)) -> Entry {
    Entry {
        name,
        start,
        packed: end - start,
        size: record.uncompressed_size_hint(),
        crc: record.crc32(),
        is_deflated: record.compression_method() == CompressionMethod::DEFLATE,
        is_executable: record.mode().value() & 0o111 != 0,
        modified: seconds(record),
    }
}

/// Nothing but plain names between slashes: see the wheel specification and PEP 427's archives, whose paths are relative.
fn check_path(name: &str) -> Result<(), &'static str> {
    let inner = name.strip_suffix('/').unwrap_or(name);
    if name.starts_with('/') {
        return Err("its name is absolute");
    }
    if name.contains(['\\', '\0', '\n']) || name.get(1..2) == Some(":") {
        return Err("its name holds what no path in a wheel may hold");
    }
    match inner.split('/').any(|part| matches!(part, "" | "." | "..")) {
        true => Err("its name leads out of the wheel"),
        false => Ok(()),
    }
}

/// A plain file or a folder, packed in a way that every installer knows.
fn check_kind(record: &ZipFileHeaderRecord) -> Result<(), String> {
    let (kind, is_dir) = (record.mode().value() & TYPE, record.is_dir());
    if record.flags().is_encrypted() {
        return Err("it is encrypted".to_owned());
    }
    // Archives of other systems tell no type.
    if !is_dir && kind != REGULAR && kind != 0 {
        return Err(format!("it is no plain file: its mode is {:o}", record.mode().value()));
    }
    match record.compression_method() {
        CompressionMethod::STORE | CompressionMethod::DEFLATE => Ok(()),
        other => Err(format!("it is packed with {other}")),
    }
}

/// An archive's clock has no zone. What is no date is the zip format's first day.
fn seconds(record: &ZipFileHeaderRecord) -> u64 {
    let time = record.last_modified();
    let text = format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
        time.year(),
        time.month(),
        time.day(),
        time.hour(),
        time.minute(),
        time.second()
    );
    let since = |text: &str| {
        humantime::parse_rfc3339(text).ok()?.duration_since(std::time::UNIX_EPOCH).ok().map(|it| it.as_secs())
    };
    since(&text).or_else(|| since("1980-01-01T00:00:00Z")).unwrap_or_default()
}
