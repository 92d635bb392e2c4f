//! Blobs, each sent in one request: small ones from memory, layers from files.

use super::{Registry, Repository, found, same};
use crate::digest;
use crate::http::{Body, Cause, Failure, Method, Request};
use crate::problem::{Id, refuse};
use anyhow::Result;
use std::io::Read;

impl Registry<'_> {
    /// A blob of at most 64 MiB.
    ///
    /// Errors: `E_BASE_GONE` where the registry has none of that digest.
    pub fn blob(&self, at: &Repository, digest: &str) -> Result<Vec<u8>> {
        let request = Request::get(at.url(&format!("blobs/{digest}")));
        let place = at.at(digest).to_string();
        let answer = self.ask(at, &place, || {
            let answer = self.let_in(at, &request)?;
            same(Some(digest), &digest::of_bytes(&answer.body))?;
            Ok(answer)
        });
        match found(answer, &place)? {
            Some(answer) => Ok(answer.body),
            None => refuse(
                Id::BaseGone,
                place,
                "the registry has no such blob",
                crate::faults::cure(Id::BaseGone),
            ),
        }
    }

    /// Stores a blob, unless it is there, and returns its digest.
    pub fn push_blob(&self, at: &Repository, bytes: &[u8]) -> Result<String> {
        let digest = digest::of_bytes(bytes);
        if self.has_blob(at, &digest)? {
            return Ok(digest);
        }
        let place = at.at(&digest).to_string();
        // An upload that failed is not gone on with: its address may be gone, and the bytes are few.
        let sent = self.ask(at, &place, || {
            let put = self.upload(at, &digest)?;
            self.let_in(at, &put.body(Body::Bytes(bytes.to_vec()))).map(drop)
        });
        sent.map(|()| digest).map_err(|failure| failure.error(place))
    }

    /// Whether a registry has a blob.
    pub fn has_blob(&self, at: &Repository, digest: &str) -> Result<bool> {
        let place = at.at(digest).to_string();
        let there = Request::new(Method::HEAD, at.url(&format!("blobs/{digest}")));
        Ok(found(self.ask(at, &place, || self.let_in(at, &there)), &place)?.is_some())
    }

    /// Stores a blob of `size` bytes that `open` gives to read, once for each try.
    pub fn push_stream<R: Read>(
        &self,
        at: &Repository,
        (digest, size): (&str, u64),
        open: impl Fn() -> std::io::Result<R>,
    ) -> Result<()> {
        let place = at.at(digest).to_string();
        let sent = self.ask(at, &place, || {
            let put = self.upload(at, digest)?;
            let mut body = open().map_err(|error| Failure::of_io(&error))?;
            self.client.send(&self.known(at, &put), &mut body, size).map(drop)
        });
        sent.map_err(|failure| failure.error(place))
    }

    /// Begins an upload; the request that will end it.
    fn upload(&self, at: &Repository, digest: &str) -> Result<Request, Failure> {
        let start = Request::new(Method::POST, at.url("blobs/uploads/")).body(Body::Bytes(Vec::new()));
        let started = self.let_in(at, &start)?;
        let Some(location) = started.header("location") else {
            return Err(Failure::new(Cause::Reset, "the registry gives no address for an upload"));
        };
        let address =
            if location.starts_with('/') { format!("{}{location}", at.base()) } else { location.to_owned() };
        let sign = if address.contains('?') { '&' } else { '?' };
        Ok(Request::new(Method::PUT, format!("{address}{sign}digest={digest}"))
            .header("content-type", "application/octet-stream"))
    }
}
