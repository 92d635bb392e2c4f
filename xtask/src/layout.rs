//! OCI image layouts on disk: documents and layers as blobs that are named by their digests. See the OCI image
//! specification, image-layout.md.

use crate::catalog::Platform;
use crate::digest;
use crate::problem::{Id, refuse};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

/// The media type of an index.
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// The media type of an image's manifest.
pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// The media type of an image's configuration.
pub const CONFIG: &str = "application/vnd.oci.image.config.v1+json";

/// Makes the folders of a layout, where they are not there.
pub fn create(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir.join("blobs/sha256")).with_context(|| format!("creating {}", dir.display()))?;
    crate::files::write(&dir.join("oci-layout"), br#"{"imageLayoutVersion":"1.0.0"}"#)
}

/// Names the manifests that a layout holds.
pub fn write_index(dir: &Path, manifests: &[Value]) -> Result<()> {
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests});
    crate::files::write(&dir.join("index.json"), &serde_json::to_vec(&index)?)
}

/// The manifests that a layout names.
pub fn manifests(dir: &Path) -> Result<Vec<Value>> {
    let index = fs::read(dir.join("index.json")).with_context(|| format!("reading {}", dir.display()))?;
    let mut index: Value = serde_json::from_slice(&index)?;
    Ok(match index["manifests"].take() {
        Value::Array(manifests) => manifests,
        _ => Vec::new(),
    })
}

/// Reads a document by its digest.
pub fn read(dir: &Path, digest: &str) -> Result<Value> {
    let file = blob(dir, digest);
    let bytes = fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
    Ok(serde_json::from_slice(&bytes)?)
}

/// The platform as manifests and configurations tell it.
pub fn platform(platform: Platform) -> Value {
    match platform {
        Platform::Amd64 => json!({"architecture": "amd64", "os": "linux"}),
        Platform::Arm64 => json!({"architecture": "arm64", "os": "linux", "variant": "v8"}),
    }
}

/// Seconds since 1970 as a configuration tells them.
pub fn created(epoch: u64) -> String {
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(epoch)).to_string()
}

/// A document and its descriptor, which needs no disk.
pub fn describe(media_type: &str, document: &Value) -> Result<(Vec<u8>, Value)> {
    let bytes = serde_json::to_vec(document)?;
    let descriptor =
        json!({"mediaType": media_type, "digest": digest::of_bytes(&bytes), "size": bytes.len()});
    Ok((bytes, descriptor))
}

/// Stores a document as a blob; its descriptor.
pub fn put(dir: &Path, media_type: &str, document: &Value) -> Result<Value> {
    let (bytes, descriptor) = describe(media_type, document)?;
    crate::files::write(&blob(dir, text(&descriptor, "digest")), &bytes)?;
    Ok(descriptor)
}

/// Where a blob is.
pub fn blob(dir: &Path, digest: &str) -> PathBuf {
    dir.join("blobs").join(digest.replace(':', "/"))
}

/// A layer of an image in a layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Digest of its file.
    pub digest: String,
    /// Bytes of its file.
    pub size: u64,
    /// Its file.
    pub file: PathBuf,
}

/// The layers of an image in a layout, by the digest of its manifest; the lowest first.
pub fn layers(dir: &Path, manifest: &str) -> Result<Vec<Layer>> {
    let manifest = read(dir, manifest)?;
    let layer = |it: &Value| {
        let digest = text(it, "digest").to_owned();
        Layer { file: blob(dir, &digest), digest, size: it["size"].as_u64().unwrap_or_default() }
    };
    Ok(manifest["layers"].as_array().into_iter().flatten().map(layer).collect())
}

/// A text field of a document.
pub fn text<'a>(document: &'a Value, field: &str) -> &'a str {
    document[field].as_str().unwrap_or_default()
}

/// Checks that a layout is whole: every blob that is named is there with its size, and with its hash where `hashes`
/// are wanted. Documents are always hashed; they are small.
///
/// Errors: `E_CHECK` with the blob that is wrong.
pub fn verify(dir: &Path, hashes: bool) -> Result<()> {
    let manifests = manifests(dir)?;
    if manifests.is_empty() {
        return wrong(dir, "index.json", "it names no manifest");
    }
    for entry in &manifests {
        check(dir, entry, true)?;
        let manifest = read(dir, text(entry, "digest"))?;
        check(dir, &manifest["config"], true)?;
        for layer in manifest["layers"].as_array().into_iter().flatten() {
            check(dir, layer, hashes)?;
        }
    }
    Ok(())
}

fn check(dir: &Path, descriptor: &Value, hash: bool) -> Result<()> {
    let digest = text(descriptor, "digest");
    let file = blob(dir, digest);
    let size = fs::metadata(&file).map(|m| m.len()).ok();
    if size.is_none() || size != descriptor["size"].as_u64() {
        return wrong(dir, digest, "its size is wrong, or it is not there");
    }
    match hash && digest::of_file(&file)? != digest {
        true => wrong(dir, digest, "its content has another hash"),
        false => Ok(()),
    }
}

fn wrong<T>(dir: &Path, blob: &str, what: &str) -> Result<T> {
    let place = format!("{}: {blob}", dir.display());
    refuse(Id::Check, place, what, "remove the folder, and run the same command again")
}
