//! Debian's docker-registry on loopback, behind a relay that counts what it is sent.

use crate::apt::{Fetcher, Wanted};
use crate::files;
use crate::interrupt;
use crate::problem::{Id, refuse};
use crate::runner::Step;
use anyhow::{Context, Result};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A registry of this run alone; its process ends with the value.
pub struct Registry {
    /// Where the relay listens: the address that images are named after.
    pub address: String,
    folder: PathBuf,
    sent: Arc<AtomicU64>,
    process: Child,
}

impl Registry {
    /// Fetches it if it is not there, and starts it; what was in its folder before goes. `suite` is Debian's stable.
    ///
    /// Errors: what fetching runs into; `E_TOOL` where it does not come up.
    pub fn start(state: &Path, suite: &str, folder: &Path, say: &dyn Fn(&str)) -> Result<Registry> {
        files::empty(folder)?;
        let fetcher = Fetcher::open(state, suite)?;
        let wanted = Wanted::new("docker-registry", &[&fetcher.own, &fetcher.stable]);
        let bundle = fetcher.bundle("docker-registry", &[wanted], say)?;
        let (relay, port) = (TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?, free_port()?);
        let configuration = folder.join("config.yml");
        let data = folder.join("data");
        let text = format!(
            "version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {}}}}}\n\
             http: {{addr: \"127.0.0.1:{port}\"}}\n",
            serde_json::to_string(&data)?
        );
        files::write(&configuration, text.as_bytes())?;
        let log = std::fs::File::create(folder.join("registry.log"))?;
        let step = Step::new("a registry", ["docker-registry", "serve"]).env("PATH", bundle.path());
        let process = step.args([configuration.display().to_string()]).daemon(log)?;
        let address = relay.local_addr()?.to_string();
        let registry = Registry { address, folder: data, sent: Arc::default(), process };
        registry.wait(port)?;
        let sent = registry.sent.clone();
        std::thread::spawn(move || serve(&relay, port, &sent));
        Ok(registry)
    }

    fn wait(&self, port: u16) -> Result<()> {
        for _ in 0..100 {
            if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
                return Ok(());
            }
            interrupt::sleep(Duration::from_millis(100))?;
        }
        refuse(
            Id::Tool,
            "docker-registry",
            "it does not answer",
            "read its log in the folder `bench` of --state",
        )
    }

    /// Bytes that it was sent until now, requests and all.
    pub fn received(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Forgets everything: no other build's base is to be found in it.
    pub fn empty(&self) -> Result<()> {
        files::empty(&self.folder)
    }

    /// How many blobs it has.
    pub fn blobs(&self) -> u64 {
        let blobs = self.folder.join("docker/registry/v2/blobs/sha256");
        files::names(&blobs).iter().map(|name| files::names(&blobs.join(name)).len() as u64).sum()
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// Relays every connection until the program ends.
fn serve(relay: &TcpListener, port: u16, sent: &Arc<AtomicU64>) {
    for client in relay.incoming().flatten() {
        let sent = sent.clone();
        // A connection that breaks is the client's to try again.
        std::thread::spawn(move || connect(client, port, &sent).ok());
    }
}

fn connect(client: TcpStream, port: u16, sent: &AtomicU64) -> Result<()> {
    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).context("connecting to the registry")?;
    let (answers, back) = (server.try_clone()?, client.try_clone()?);
    let answering = std::thread::spawn(move || pass(answers, back, |_| ()));
    pass(client, server, |bytes| {
        sent.fetch_add(bytes, Ordering::Relaxed);
    });
    answering.join().ok();
    Ok(())
}

/// Copies until one side ends, telling of the bytes as they pass.
fn pass(mut from: TcpStream, mut to: TcpStream, passed: impl Fn(u64)) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        passed(n as u64);
        if to.write_all(&buffer[..n]).is_err() {
            break;
        }
    }
    to.shutdown(Shutdown::Write).ok();
}
