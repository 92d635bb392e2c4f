//! A registry, as the OCI distribution specification (v1.1) has it: every request is let in and tried again in one way.
//!
//! Bytes are believed by their digest alone.

mod blobs;
mod credentials;
mod manifest;
mod reference;
mod referrers;
mod token;

pub use manifest::{Descriptor, Document, INDEXES, MANIFESTS, Manifest, PlatformName};
pub use reference::{Reference, Repository};
pub use referrers::{Artifact, fallback_tag};

use crate::digest;
use crate::http::{Answer, Body, Cause, Client, Failure, Method, Request, Retry};
use anyhow::Result;
use credentials::{Config, Credentials};
use serde::Deserialize;
use std::cell::RefCell;
use std::collections::BTreeMap;
use token::Challenge;

/// Registries, with what one is let in by.
pub struct Registry<'a> {
    client: Client,
    retry: Retry<'a>,
    config: Config,
    /// The last `Authorization` that let one in, by host and repository.
    allowed: RefCell<BTreeMap<String, String>>,
}

impl<'a> Registry<'a> {
    /// A client of every registry that this user is logged in to.
    pub fn new(client: Client, retry: Retry<'a>) -> Result<Registry<'a>> {
        Ok(Registry { client, retry, config: Config::read()?, allowed: RefCell::default() })
    }

    /// The way to try again that is used here, for what others do with the same registry.
    pub fn retry(&self) -> &Retry<'a> {
        &self.retry
    }

    /// Whether a registry answers at all: one try.
    pub fn ready(&self, at: &Repository) -> Result<(), Failure> {
        self.let_in(at, &Request::get(format!("{}/v2/", at.base()))).map(drop)
    }

    /// What a tag or digest names; none where the registry has no such thing. Its platform is not told.
    pub fn resolve(&self, reference: &Reference) -> Result<Option<Descriptor>> {
        // An answer to HEAD need not have a digest, and has no bytes to make one of.
        Ok(self.manifest(reference)?.map(|manifest| manifest.descriptor()))
    }

    /// A manifest with its bytes; none where the registry has no such thing.
    pub fn manifest(&self, reference: &Reference) -> Result<Option<Manifest>> {
        let url = reference.repository.url(&format!("manifests/{}", reference.which));
        let request = Request::get(url).header("accept", [MANIFESTS, INDEXES].concat().join(", "));
        let answer = self.ask(&reference.repository, &reference.to_string(), || {
            let answer = self.let_in(&reference.repository, &request)?;
            let digest = digest::of_bytes(&answer.body);
            let promised = if reference.is_digest() {
                Some(reference.which.as_str())
            } else {
                answer.header("docker-content-digest")
            };
            same(promised, &digest)?;
            Ok(answer)
        });
        let Some(answer) = found(answer, reference)? else {
            return Ok(None);
        };
        let media_type = answer.header("content-type").unwrap_or_default().to_owned();
        Ok(Some(Manifest::of_bytes(answer.body, media_type)))
    }

    /// Stores a manifest under a tag or its own digest. Whether the registry lists it as a referrer of its subject is
    /// the result.
    pub fn put(&self, reference: &Reference, manifest: &Manifest) -> Result<bool> {
        let url = reference.repository.url(&format!("manifests/{}", reference.which));
        let request = Request::new(Method::PUT, url)
            .header("content-type", &manifest.media_type)
            .body(Body::Bytes(manifest.bytes.clone()));
        let answer = self.ask(&reference.repository, &reference.to_string(), || {
            let answer = self.let_in(&reference.repository, &request)?;
            same(answer.header("docker-content-digest"), &manifest.digest)?;
            Ok(answer)
        });
        match answer {
            Ok(answer) => Ok(answer.header("oci-subject").is_some()),
            Err(failure) => Err(failure.error(reference.to_string())),
        }
    }

    /// Every tag of a repository, in order; none where there is no such repository.
    pub fn tags(&self, at: &Repository) -> Result<Vec<String>> {
        #[derive(Deserialize)]
        struct Page {
            tags: Option<Vec<String>>,
        }
        let mut tags = Vec::new();
        let mut next = Some(at.url("tags/list?n=1000"));
        while let Some(url) = next.take() {
            let request = Request::get(url);
            let answer = self.ask(at, &at.to_string(), || self.let_in(at, &request));
            let Some(answer) = found(answer, at)? else {
                return Ok(tags);
            };
            let page: Page = serde_json::from_slice(&answer.body)?;
            tags.extend(page.tags.unwrap_or_default());
            next = answer.header("link").and_then(next_page).map(|path| match path.starts_with('/') {
                true => format!("{}{path}", at.base()),
                false => path.to_owned(),
            });
        }
        tags.sort_unstable();
        tags.dedup();
        Ok(tags)
    }

    /// Removes a manifest by digest, and every tag that points at it. One that is gone is no error.
    pub fn delete(&self, at: &Repository, digest: &str) -> Result<()> {
        let reference = at.at(digest);
        let request = Request::new(Method::DELETE, at.url(&format!("manifests/{digest}")));
        let answer = self.ask(at, &reference.to_string(), || self.let_in(at, &request));
        found(answer, &reference).map(drop)
    }

    /// One request, tried again by the policy.
    fn ask<T>(
        &self,
        at: &Repository,
        what: &str,
        once: impl FnMut() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.retry.run(what, once).inspect_err(|failure| {
            if failure.cause == Cause::Status(401) {
                self.allowed.borrow_mut().remove(&at.to_string());
            }
        })
    }

    /// One request; where the registry wants to know who asks, it is told, and asked again.
    fn let_in(&self, at: &Repository, request: &Request) -> Result<Answer<Vec<u8>>, Failure> {
        let refused = match self.client.whole(&self.known(at, request)) {
            Err(failure) if failure.cause == Cause::Status(401) => failure,
            answer => return answer,
        };
        let authorization = self.authorize(at, &refused)?;
        self.allowed.borrow_mut().insert(at.to_string(), authorization);
        self.client.whole(&self.known(at, request))
    }

    /// A request with what let one in the last time.
    fn known(&self, at: &Repository, request: &Request) -> Request {
        match self.allowed.borrow().get(&at.to_string()) {
            Some(value) => request.clone().header("authorization", value),
            None => request.clone(),
        }
    }

    fn authorize(&self, at: &Repository, refused: &Failure) -> Result<String, Failure> {
        let nobody = |said: String| Failure::new(Cause::Status(401), said);
        let credentials = self.config.of(&at.host).map_err(|error| nobody(error.to_string()))?;
        match Challenge::parse(&refused.challenges) {
            Some(Challenge::Bearer { realm, service, scope }) => {
                // One token for all that is done here; a registry that wants less names less.
                let all = format!("repository:{}:pull,push", at.name);
                let scope =
                    scope.filter(|scope| scope.contains("push") || scope.contains("delete")).unwrap_or(all);
                let token =
                    token::fetch(&self.client, credentials.as_ref(), (&realm, service.as_deref(), &scope))?;
                Ok(format!("Bearer {token}"))
            }
            Some(Challenge::Basic) => match credentials.as_ref().and_then(Credentials::basic) {
                Some(basic) => Ok(basic),
                None => Err(nobody(format!("nobody is logged in at {}", at.host))),
            },
            None => Err(refused.clone()),
        }
    }
}

/// Nothing, where a registry says that there is nothing.
fn found<T>(answer: Result<T, Failure>, place: &impl ToString) -> Result<Option<T>> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(failure) if failure.cause == Cause::Status(404) => Ok(None),
        Err(failure) => Err(failure.error(place.to_string())),
    }
}

/// Bytes are what their digest promised.
fn same(promised: Option<&str>, digest: &str) -> Result<(), Failure> {
    match promised {
        Some(promised) if promised != digest => {
            Err(Failure::new(Cause::Corrupt, format!("{digest} came instead of {promised}")))
        }
        _ => Ok(()),
    }
}

/// The address in `Link: <…>; rel="next"`.
fn next_page(link: &str) -> Option<&str> {
    let (address, relation) = link.strip_prefix('<')?.split_once('>')?;
    relation.contains("next").then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_found() {
        assert_eq!(
            next_page("</v2/a/tags/list?last=b&n=1>; rel=\"next\""),
            Some("/v2/a/tags/list?last=b&n=1")
        );
        assert_eq!(next_page("<x>; rel=\"prev\""), None);
        assert_eq!(next_page(""), None);
    }
}
