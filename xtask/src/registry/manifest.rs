//! The parts of OCI manifests and indexes that are read and written here.

use crate::digest;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// OCI's and docker's names of an image's manifest.
pub const MANIFESTS: &[&str] =
    &["application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json"];
/// OCI's and docker's names of an index of manifests.
pub const INDEXES: &[&str] =
    &["application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json"];
/// The configuration of what needs none.
pub const EMPTY: &str = "application/vnd.oci.empty.v1+json";

/// What names a blob or manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)] // The OCI image specification, descriptor.md, tells each.
pub struct Descriptor {
    pub media_type: String,
    pub digest: String,
    pub size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<PlatformName>,
}

/// The platform of an index's entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct PlatformName {
    pub architecture: String,
    pub os: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
}

/// A manifest or an index: an index has `manifests`, a manifest `config` and `layers`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)] // The OCI image specification, manifest.md and image-index.md.
pub struct Document {
    pub schema_version: u32,
    #[serde(default)]
    pub media_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Descriptor>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<Descriptor>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifests: Option<Vec<Descriptor>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Descriptor>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// A document as a registry has it: the bytes decide its digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Its media type.
    pub media_type: String,
    /// Its digest.
    pub digest: String,
}

impl Manifest {
    /// The bytes of a document.
    pub fn of(document: &Document) -> Result<Manifest> {
        Ok(Manifest::of_bytes(serde_json::to_vec(document)?, document.media_type.clone()))
    }

    /// Bytes that somebody else wrote.
    pub fn of_bytes(bytes: Vec<u8>, media_type: String) -> Manifest {
        Manifest { digest: digest::of_bytes(&bytes), bytes, media_type }
    }

    /// What it says.
    pub fn document(&self) -> Result<Document> {
        serde_json::from_slice(&self.bytes).with_context(|| format!("reading manifest {}", self.digest))
    }

    /// What names it.
    pub fn descriptor(&self) -> Descriptor {
        Descriptor {
            media_type: self.media_type.clone(),
            digest: self.digest.clone(),
            size: self.bytes.len() as u64,
            ..Descriptor::default()
        }
    }
}

impl Descriptor {
    /// What names some bytes.
    pub fn of(media_type: &str, bytes: &[u8]) -> Descriptor {
        Descriptor {
            media_type: media_type.to_owned(),
            digest: digest::of_bytes(bytes),
            size: bytes.len() as u64,
            ..Descriptor::default()
        }
    }

    /// `linux/amd64`; none where the entry names no platform, or is an attestation of BuildKit's.
    pub fn platform(&self) -> Option<String> {
        let platform = self.platform.as_ref()?;
        (platform.os != "unknown").then(|| format!("{}/{}", platform.os, platform.architecture))
    }
}

impl Document {
    /// An index of manifests, the same bytes for the same entries.
    pub fn index(manifests: Vec<Descriptor>) -> Document {
        Document {
            schema_version: 2,
            media_type: INDEXES[0].to_owned(),
            manifests: Some(manifests),
            ..Document::default()
        }
    }
}
