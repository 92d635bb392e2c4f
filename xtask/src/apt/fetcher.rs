//! What the private tools are fetched with: one apt that knows Debian stable, testing and the host's own suites.

use super::archives::{Archives, Family};
use super::bundle::{self, Bundle, Wanted};
use super::{Apt, Host};
use crate::hold::Hold;
use anyhow::Result;
use std::path::{Path, PathBuf};

/// A host, its archives, and an apt of our own.
pub struct Fetcher {
    /// The host.
    pub host: Host,
    /// Whose packages the tools are.
    pub family: Family,
    /// Suites of Debian stable; on Ubuntu the host's own.
    pub stable: Vec<String>,
    /// Suites of Debian testing; on Ubuntu the host's own.
    pub testing: Vec<String>,
    /// The host's own suites.
    pub own: Vec<String>,
    apt: Apt,
    tools: PathBuf,
}

impl Fetcher {
    /// Finds out what the host offers. Nothing is fetched yet.
    ///
    /// `state` is the folder for everything private, `stable` Debian's name of the stable suite.
    /// Errors: `E_HOST` where this is neither Debian nor Ubuntu, or its sources name no archive.
    pub fn open(state: &Path, stable: &str) -> Result<Fetcher> {
        let host = Host::read()?;
        let family = match host.os.id.as_str() {
            "ubuntu" => Family::Ubuntu,
            _ => Family::Debian,
        };
        let archives = Archives::of_host(family, &host, &state.join("keys"))?;
        let names =
            |sources: &[super::Source]| -> Vec<String> { sources.iter().map(|s| s.suite.clone()).collect() };
        let own = names(&archives.host);
        let (mut sources, stable, testing) = match family {
            Family::Ubuntu => (Vec::new(), own.clone(), own.clone()),
            Family::Debian => {
                let stable = archives.suite(stable, false);
                // Not every mirror carries testing; stable will do then.
                let testing = archives.suite("testing", true);
                let both = stable.iter().chain(&testing).cloned().collect();
                (both, names(&stable), names(&testing))
            }
        };
        for source in &archives.host {
            // apt complains about a source that is named twice.
            if !sources.iter().any(|s: &super::Source| s.line() == source.line()) {
                sources.push(source.clone());
            }
        }
        Ok(Fetcher {
            apt: Apt::new(&state.join("apt"), sources),
            tools: state.join("tools"),
            host,
            family,
            stable,
            testing,
            own,
        })
    }

    /// The named bundle with these packages, fetched unless it is there. See [`bundle::provide`].
    pub fn bundle(&self, name: &str, wanted: &[Wanted], say: &dyn Fn(&str)) -> Result<Bundle> {
        let _hold = Hold::wait(&self.tools, "packages", say)?;
        bundle::provide(&self.tools.join(name), wanted, &self.apt, &self.host, say)
    }
}
