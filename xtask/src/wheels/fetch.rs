//! Wheels by their hashes: several at once, each where it was broken off, into a cache.

use super::arrivals::Arrivals;
use super::base::Files;
use super::index::{self, ACCEPT};
use crate::digest;
use crate::faults;
use crate::http::{Cause, Client, Failure, Policy, Request, Retry, Until};
use crate::interrupt;
use crate::lock::Wheel;
use crate::problem::{Id, refuse};
use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::cmp::Reverse;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

/// At once: enough to fill a line whose single connections are slow, too few to be a burden.
const CONNECTIONS: usize = 4;
/// For one wheel: the biggest takes minutes over a slow line, and what came is kept.
const BUDGET: Duration = Duration::from_secs(1800);
const PIECE: usize = 1 << 18;

/// The way out where a wheel is not to be had.
const ANOTHER: &str =
    "name an index that has it (PIP_INDEX_URL, UV_DEFAULT_INDEX), or run `cargo xtask lock --update`";

/// The folder of the wheels in a cache.
pub const FOLDER: &str = "wheels";

/// Where wheels come from and where they are kept.
pub struct Fetch<'a> {
    /// The addresses of the indexes, the most trusted first. They may hold a user and a password.
    pub indexes: &'a [String],
    /// The cache folder.
    pub cache: &'a Path,
    /// Told of every pause.
    pub say: &'a (dyn Fn(&str) + Sync),
    /// Told of bytes as they come.
    pub came: &'a (dyn Fn(u64) + Sync),
}

/// Where a wheel is in a cache. Its own name is a part of it, for the messages.
pub fn place(cache: &Path, wheel: &Wheel) -> PathBuf {
    cache.join(FOLDER).join(&wheel.sha256).join(&wheel.file)
}

impl Fetch<'_> {
    /// The wheels, from the cache or from an index, each proved by its hash.
    ///
    /// Errors: `E_WHEEL_HASH` where no index has a file with that hash, or other bytes come; `E_NETWORK`, `E_TLS`, … by what
    /// an index says. What came before that stays in the cache.
    pub fn provide(&self, wheels: &[&Wheel]) -> Result<Files> {
        let arrivals = Arrivals::default();
        self.bring(wheels, &arrivals);
        arrivals.into_files()
    }

    /// The same for those who wait: each wheel is told when it is here, and so is a failure. A failure of others ends this
    /// too: soon, and what came stays in the cache.
    pub fn bring(&self, wheels: &[&Wheel], arrivals: &Arrivals) {
        let _until_here = arrivals.expected();
        let client = match Client::new() {
            Ok(client) => client,
            Err(error) => return arrivals.fail(error),
        };
        let mut queue: Vec<&Wheel> = wheels.to_vec();
        // The biggest first.
        queue.sort_by_key(|wheel| Reverse(wheel.bytes));
        let next = AtomicUsize::new(0);
        let work = || {
            while !arrivals.has_failed()
                && let Some(wheel) = queue.get(next.fetch_add(1, Ordering::Relaxed))
            {
                match self.one(&client, wheel, arrivals) {
                    Ok(path) => arrivals.came(wheel, path),
                    Err(error) => arrivals.fail(error),
                }
            }
        };
        std::thread::scope(|scope| (0..CONNECTIONS).for_each(|_| drop(scope.spawn(work))));
    }

    fn one(&self, client: &Client, wheel: &Wheel, arrivals: &Arrivals) -> Result<PathBuf> {
        let path = place(self.cache, wheel);
        if path.exists() {
            // A cache is a folder that anybody may have been at.
            if digest::of_file(&path)? == format!("sha256:{}", wheel.sha256) {
                // The time tells which wheels are in use.
                File::options().append(true).open(&path)?.set_modified(SystemTime::now())?;
                (self.came)(wheel.bytes);
                return Ok(path);
            }
            fs::remove_file(&path)?;
        }
        let folder = path.parent().unwrap_or(self.cache);
        fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
        let (address, authorization) = self.find(client, wheel, arrivals)?;
        let part = path.with_extension("part");
        let (say, clock): (&dyn Fn(&str), _) = (self.say, &Until(|| arrivals.has_failed()));
        let retry = Retry { policy: Policy::within(BUDGET), clock, say };
        let got = retry.run(&wheel.file, || {
            self.try_once(client, (&address, authorization.as_deref()), wheel, &part, arrivals)
        });
        match got {
            Ok(()) => {}
            Err(failure) if failure.cause == Cause::Corrupt => {
                return refuse(
                    Id::WheelHash,
                    &wheel.file,
                    failure.to_string(),
                    "ask another index or mirror, or run `cargo xtask lock --update` if the new file is meant",
                );
            }
            Err(failure) if failure.cause.is_gone() => {
                let what = format!("its index names it and does not have it: {failure}");
                return refuse(Id::WheelHash, &wheel.file, what, ANOTHER);
            }
            Err(failure) => return Err(failure.error(&wheel.file)),
        }
        fs::rename(&part, &path).with_context(|| format!("writing {}", path.display()))?;
        Ok(path)
    }

    /// The address of a wheel, and the header that its index wants.
    fn find(&self, client: &Client, wheel: &Wheel, arrivals: &Arrivals) -> Result<(String, Option<String>)> {
        let (say, clock): (&dyn Fn(&str), _) = (self.say, &Until(|| arrivals.has_failed()));
        let retry = Retry { policy: Policy::within(Duration::from_secs(60)), clock, say };
        let mut last = None;
        for index in self.indexes {
            let (index, authorization) = without_credentials(index);
            let page = index::page(&index, &wheel.name);
            let request = with(Request::get(&page).header("Accept", ACCEPT), authorization.as_deref());
            let ask = || {
                goes_on(arrivals)?;
                client.whole(&request)
            };
            match retry.run(&format!("the index's page of {}", wheel.name), ask) {
                Ok(answer) => {
                    let text = String::from_utf8_lossy(&answer.body);
                    if let Some(address) = index::address(&page, &text, &wheel.file, &wheel.sha256) {
                        // Credentials go nowhere but to the host they were given for.
                        let same = host(&address) == host(&index);
                        return Ok((address, authorization.filter(|_| same)));
                    }
                }
                Err(failure) if failure.cause.is_gone() => {}
                Err(failure) => last = Some(failure),
            }
        }
        match last {
            Some(failure) => Err(failure.error(format!("the index's page of {}", wheel.name))),
            None => refuse(
                Id::WheelHash,
                &wheel.file,
                format!("no index that this host names has a file with SHA-256 {}", wheel.sha256),
                ANOTHER,
            ),
        }
    }

    /// One try: what is there already is asked for no second time.
    fn try_once(
        &self,
        client: &Client,
        (address, authorization): (&str, Option<&str>),
        wheel: &Wheel,
        part: &Path,
        arrivals: &Arrivals,
    ) -> Result<(), Failure> {
        goes_on(arrivals)?;
        let io = |error: std::io::Error| Failure::of_io(&error);
        let there = fs::metadata(part).map_or(0, |it| it.len());
        let mut request = with(Request::get(address), authorization);
        if there > 0 {
            request = request.header("Range", format!("bytes={there}-"));
        }
        let mut answer = match client.once(&request) {
            // Nothing is behind what is there: it is whole, or not its beginning.
            Err(failure) if failure.cause == Cause::Status(416) => return self.prove(wheel, part),
            other => other?,
        };
        let is_rest = answer.status == 206
            && answer.header("Content-Range").is_some_and(|it| it.starts_with(&format!("bytes {there}-")));
        let mut file = match is_rest {
            true => File::options().append(true).open(part),
            false => File::create(part),
        }
        .map_err(io)?;
        let mut piece = vec![0; PIECE];
        loop {
            goes_on(arrivals)?;
            match answer.body.read(&mut piece).map_err(io)? {
                0 => break,
                n => {
                    file.write_all(&piece[..n]).map_err(io)?;
                    (self.came)(n as u64);
                }
            }
        }
        file.sync_all().map_err(io)?;
        self.prove(wheel, part)
    }

    /// A file with other bytes is not gone on with.
    fn prove(&self, wheel: &Wheel, part: &Path) -> Result<(), Failure> {
        let digest =
            digest::of_file(part).map_err(|error| Failure::new(Cause::Other(Id::Host), error.to_string()))?;
        if digest == format!("sha256:{}", wheel.sha256) {
            return Ok(());
        }
        let size = fs::metadata(part).map_or(0, |it| it.len());
        if size < wheel.bytes {
            return Err(Failure::new(Cause::Reset, format!("{size} of {} bytes came", wheel.bytes)));
        }
        fs::remove_file(part).ok();
        Err(Failure::new(Cause::Corrupt, format!("it came with {digest}, the lock has {}", wheel.sha256)))
    }
}

/// Whether anybody still waits for what comes.
fn goes_on(arrivals: &Arrivals) -> Result<(), Failure> {
    let stop = |why: String| Failure::new(Cause::Other(Id::Host), why);
    interrupt::check().map_err(|it| stop(it.to_string()))?;
    match arrivals.has_failed() {
        true => Err(stop("something else failed before".to_owned())),
        false => Ok(()),
    }
}

fn with(request: Request, authorization: Option<&str>) -> Request {
    match authorization {
        Some(value) => request.header("Authorization", value),
        None => request,
    }
}

fn host(address: &str) -> Option<&str> {
    address.split("://").nth(1)?.split('/').next()
}

/// An address without its `user:password@`, and the header that says the same.
fn without_credentials(address: &str) -> (String, Option<String>) {
    let plain = faults::strip_credentials(address);
    let given = host(address).and_then(|host| host.rsplit_once('@')).map(|(user, _)| decoded(user));
    (plain, given.map(|user| format!("Basic {}", STANDARD.encode(user))))
}

/// Undoes the percent signs of an address: see RFC 3986, section 2.1.
fn decoded(text: &str) -> Vec<u8> {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        match part.get(..2).and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend_from_slice(&part.as_bytes()[2..]);
            }
            None => {
                bytes.push(b'%');
                bytes.extend_from_slice(part.as_bytes());
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests;
