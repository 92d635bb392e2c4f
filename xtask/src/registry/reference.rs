//! Names of things in registries: `HOST[:PORT]/NAME[:TAG|@DIGEST]`, as the OCI distribution specification has them.

use crate::http::is_loopback;
use crate::problem::{Id, refuse};
use anyhow::Result;
use std::fmt;

/// A repository of a registry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Repository {
    /// The registry's host, with a port where one is named.
    pub host: String,
    /// The name below it.
    pub name: String,
}

/// A manifest of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Where.
    pub repository: Repository,
    /// A tag, or a digest (`sha256:…`).
    pub which: String,
}

impl Repository {
    /// From `--registry`, which may have a path, and the catalog's repository.
    ///
    /// Errors: `E_NAME` for what names no registry.
    pub fn below(registry: &str, repository: &str) -> Result<Repository> {
        let whole = format!("{}/{repository}", registry.trim_end_matches('/'));
        Ok(Reference::parse("--registry", &format!("{whole}:x"))?.repository)
    }

    /// A manifest by tag or digest.
    pub fn at(&self, which: impl Into<String>) -> Reference {
        Reference { repository: self.clone(), which: which.into() }
    }

    /// The address of something below the repository's part of the API.
    ///
    /// The registry of this machine is spoken to without TLS, as docker does; no other is.
    pub(super) fn url(&self, path: &str) -> String {
        format!("{}/v2/{}/{path}", self.base(), self.name)
    }

    /// The address of the registry.
    pub(super) fn base(&self) -> String {
        let host = host_without_port(&self.host);
        let scheme = if is_loopback(host) { "http" } else { "https" };
        format!("{scheme}://{}", self.host)
    }
}

impl Reference {
    /// Takes a reference apart; `place` is where it was given.
    ///
    /// Errors: `E_NAME` for one that does not name its registry, or neither tag nor digest.
    pub fn parse(place: &str, text: &str) -> Result<Reference> {
        let parts = || -> Option<Reference> {
            let (host, rest) = text.split_once('/')?;
            let (rest, digest) = match rest.split_once('@') {
                Some((rest, digest)) => (rest, Some(digest)),
                None => (rest, None),
            };
            let last = rest.rfind('/').map_or(0, |at| at + 1);
            let (name, tag) = match rest[last..].split_once(':') {
                Some((name, tag)) => (format!("{}{name}", &rest[..last]), Some(tag)),
                None => (rest.to_owned(), None),
            };
            let which = digest.or(tag)?.to_owned();
            let legal = crate::catalog::names_registry(text) && is_name(&name) && !which.is_empty();
            legal.then(|| Reference { repository: Repository { host: host.to_owned(), name }, which })
        };
        match parts() {
            Some(reference) => Ok(reference),
            None => refuse(
                Id::Name,
                place,
                format!("`{text}` is no image of a registry"),
                "write HOST[:PORT]/NAME:TAG or …@sha256:…, in lower case, with the registry's own host",
            ),
        }
    }

    /// Whether it is a digest, which no one can move.
    pub fn is_digest(&self) -> bool {
        self.which.starts_with("sha256:")
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.host, self.name)
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.is_digest() { '@' } else { ':' };
        write!(f, "{}{sign}{}", self.repository, self.which)
    }
}

fn host_without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    }
}

fn is_name(name: &str) -> bool {
    let part = |part: &str| {
        let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        part.chars().next().is_some_and(word) && part.chars().all(|c| word(c) || "._-".contains(c))
    };
    name.split('/').all(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_taken_apart() {
        let cases = [
            ("r.example.org/a/b:1", "r.example.org", "a/b", "1"),
            ("localhost:5000/a@sha256:00", "localhost:5000", "a", "sha256:00"),
            ("r.example.org/a:1@sha256:00", "r.example.org", "a", "sha256:00"),
            ("[::1]:5000/a:x", "[::1]:5000", "a", "x"),
        ];
        for (text, host, name, which) in cases {
            let it = Reference::parse("p", text).unwrap();
            assert_eq!(
                (it.repository.host.as_str(), it.repository.name.as_str(), it.which.as_str()),
                (host, name, which)
            );
        }
        for text in [
            "ubuntu:24.04",
            "r.example.org/a",
            "r.example.org/A:1",
            "library/ubuntu:1",
            "r.example.org/:1",
            "",
        ] {
            let error = Reference::parse("p", text).unwrap_err().to_string();
            assert!(error.contains("error[E_NAME]: p") && error.contains(text), "{error}");
        }
    }

    #[test]
    fn only_this_machine_is_spoken_to_without_tls() {
        let url = |registry: &str| Repository::below(registry, "p").unwrap().url("tags/list");
        assert_eq!(url("127.0.0.1:5000"), "http://127.0.0.1:5000/v2/p/tags/list");
        assert_eq!(url("localhost:5000/x/"), "http://localhost:5000/v2/x/p/tags/list");
        assert_eq!(url("[::1]:5000"), "http://[::1]:5000/v2/p/tags/list");
        assert_eq!(url("r.example.org/x"), "https://r.example.org/v2/x/p/tags/list");
        assert_eq!(url("10.0.0.1:5000"), "https://10.0.0.1:5000/v2/p/tags/list");
    }
}
