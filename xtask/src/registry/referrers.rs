//! What belongs to an image and is no part of it: reports, lists of contents, signatures. Each is a manifest that names
//! the image as its subject.
//!
//! A registry that knows no referrers (before v1.1 of the specification) keeps their list under a tag made from the
//! subject's digest.

use super::manifest::EMPTY;
use super::{Descriptor, Document, MANIFESTS, Manifest, Registry, Repository, found};
use crate::http::Request;
use anyhow::Result;
use std::collections::BTreeMap;

/// What is attached to an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// Its sort, a media type.
    pub artifact_type: String,
    /// Its content.
    pub content: Vec<u8>,
    /// What can be read without fetching it.
    pub annotations: BTreeMap<String, String>,
}

impl Artifact {
    /// Its manifest: the content is its only layer.
    fn manifest(&self, subject: &Descriptor) -> Result<Manifest> {
        Manifest::of(&Document {
            schema_version: 2,
            media_type: MANIFESTS[0].to_owned(),
            artifact_type: Some(self.artifact_type.clone()),
            config: Some(Descriptor::of(EMPTY, b"{}")),
            layers: vec![Descriptor::of(&self.artifact_type, &self.content)],
            subject: Some(Descriptor {
                media_type: subject.media_type.clone(),
                digest: subject.digest.clone(),
                size: subject.size,
                ..Descriptor::default()
            }),
            annotations: self.annotations.clone(),
            ..Document::default()
        })
    }
}

impl Registry<'_> {
    /// Attaches something to an image, and returns the digest of its manifest.
    pub fn attach(&self, at: &Repository, subject: &Descriptor, artifact: &Artifact) -> Result<String> {
        self.push_blob(at, b"{}")?;
        self.push_blob(at, &artifact.content)?;
        let manifest = artifact.manifest(subject)?;
        let listed = self.put(&at.at(&manifest.digest), &manifest)?;
        if !listed {
            self.list_under_tag(at, subject, artifact, &manifest)?;
        }
        Ok(manifest.digest)
    }

    /// What is attached to an image, of one sort, as the registry lists it.
    pub fn referrers(&self, at: &Repository, subject: &str, artifact_type: &str) -> Result<Vec<Descriptor>> {
        let mut all = self.all_referrers(at, subject)?;
        all.retain(|it| it.artifact_type.as_deref() == Some(artifact_type));
        Ok(all)
    }

    /// Everything that is attached to an image.
    pub fn all_referrers(&self, at: &Repository, subject: &str) -> Result<Vec<Descriptor>> {
        let request = Request::get(at.url(&format!("referrers/{subject}")));
        let answer = self.ask(at, &at.to_string(), || self.let_in(at, &request));
        let document: Document = match found(answer, at)? {
            Some(answer) => serde_json::from_slice(&answer.body)?,
            None => match self.manifest(&at.at(fallback_tag(subject)))? {
                Some(manifest) => manifest.document()?,
                None => return Ok(Vec::new()),
            },
        };
        Ok(document.manifests.unwrap_or_default())
    }

    /// The content of what is attached.
    pub fn attached(&self, at: &Repository, listed: &Descriptor) -> Result<Option<Vec<u8>>> {
        let Some(manifest) = self.manifest(&at.at(&listed.digest))? else {
            return Ok(None);
        };
        match manifest.document()?.layers.first() {
            Some(layer) => self.blob(at, &layer.digest).map(Some),
            None => Ok(None),
        }
    }

    fn list_under_tag(
        &self,
        at: &Repository,
        subject: &Descriptor,
        artifact: &Artifact,
        manifest: &Manifest,
    ) -> Result<()> {
        let tag = at.at(fallback_tag(&subject.digest));
        let mut entries = match self.manifest(&tag)? {
            Some(there) => there.document()?.manifests.unwrap_or_default(),
            None => Vec::new(),
        };
        if entries.iter().any(|it| it.digest == manifest.digest) {
            return Ok(());
        }
        entries.push(Descriptor {
            artifact_type: Some(artifact.artifact_type.clone()),
            annotations: artifact.annotations.clone(),
            ..manifest.descriptor()
        });
        self.put(&tag, &Manifest::of(&Document::index(entries))?).map(drop)
    }
}

/// The tag under which a registry without referrers keeps their list: `sha256-<hex>`.
pub fn fallback_tag(digest: &str) -> String {
    digest.replacen(':', "-", 1)
}
