//! SHA-256 over bytes, values and files, in the form that OCI uses: `sha256:<hex>`.

use anyhow::{Context, Result};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::io::Read;
use std::path::Path;

/// The digest of some bytes.
pub fn of_bytes(bytes: &[u8]) -> String {
    let mut hash = Sha256::new();
    hash.update(bytes);
    name(hash)
}

/// The digest of a value's compact JSON. Maps must be ordered, so that equal values have equal digests.
pub fn of_json(value: &impl Serialize) -> Result<String> {
    Ok(of_bytes(&serde_json::to_vec(value)?))
}

/// The digest of a file's content.
pub fn of_file(path: &Path) -> Result<String> {
    let file = std::fs::File::open(path).with_context(|| format!("reading {}", path.display()))?;
    of_reader(file)
}

/// The digest of what is read, in pieces of one megabyte.
pub fn of_reader(mut reader: impl Read) -> Result<String> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match reader.read(&mut buffer)? {
            0 => return Ok(name(hash)),
            n => hash.update(&buffer[..n]),
        }
    }
}

/// The digest that a hash has come to.
pub fn name(hash: Sha256) -> String {
    hash.finalize().iter().fold("sha256:".to_owned(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_nothing_is_the_known_one() {
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(of_bytes(b""), empty);
        assert_eq!(of_file(Path::new("/dev/null")).unwrap(), empty);
        assert_eq!(of_json(&["a", "b"]).unwrap(), of_bytes(br#"["a","b"]"#));
    }
}
