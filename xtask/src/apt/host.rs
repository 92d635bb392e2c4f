//! The host as its package manager sees it.

use crate::problem::{Id, refuse};
use crate::runner::Step;
use anyhow::Result;
use std::sync::OnceLock;

/// What `/etc/os-release` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OsRelease {
    /// `ID`: `debian`, `ubuntu`, …; empty where there is no such file.
    pub id: String,
    /// `VERSION_CODENAME`: `bookworm`; empty on rolling systems.
    pub codename: String,
    /// `PRETTY_NAME`, for messages.
    pub name: String,
}

/// A Debian or Ubuntu host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Which system it is.
    pub os: OsRelease,
    /// Version of its C library: `2.36-9`.
    pub libc: String,
    /// Debian's name of its architecture: `amd64`.
    pub arch: String,
}

impl Host {
    /// Asks dpkg, once: every root and every layer on one wants to know, and the answer does not change.
    ///
    /// Errors: `E_HOST` where the system is neither Debian nor Ubuntu; `E_TOOL` where dpkg is missing.
    pub fn read() -> Result<Host> {
        static KNOWN: OnceLock<Host> = OnceLock::new();
        if let Some(known) = KNOWN.get() {
            return Ok(known.clone());
        }
        let host = Host::ask()?;
        Ok(KNOWN.get_or_init(|| host).clone())
    }

    fn ask() -> Result<Host> {
        let os = os_release();
        if !["debian", "ubuntu"].contains(&os.id.as_str()) {
            return refuse(
                Id::Host,
                "/etc/os-release",
                format!("the system is `{}`, neither Debian nor Ubuntu", os.id),
                "run this on Debian or Ubuntu, for instance in a container of theirs",
            );
        }
        let versions = Step::new(
            "the host's C library",
            ["dpkg-query", "--show", "--showformat=${Version}\\n", "libc6"],
        )
        .read()?;
        let arch = Step::new("the host's architecture", ["dpkg", "--print-architecture"]).read()?;
        Ok(Host { os, libc: versions.lines().next().unwrap_or_default().to_owned(), arch })
    }
}

/// Reads `/etc/os-release`; an empty answer where there is none.
pub fn os_release() -> OsRelease {
    OsRelease::parse(&std::fs::read_to_string("/etc/os-release").unwrap_or_default())
}

impl OsRelease {
    /// Reads shell-like assignments, as os-release(5) describes them.
    pub fn parse(text: &str) -> OsRelease {
        let get = |key: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
            value.unwrap_or_default().trim().trim_matches(['"', '\'']).to_owned()
        };
        OsRelease { id: get("ID"), codename: get("VERSION_CODENAME"), name: get("PRETTY_NAME") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn os_release_is_read_with_and_without_quotes() {
        let text = "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nVERSION_CODENAME=bookworm\nID=debian\nID_LIKE=x\n";
        let os = OsRelease::parse(text);
        assert_eq!((os.id.as_str(), os.codename.as_str()), ("debian", "bookworm"));
        assert_eq!(os.name, "Debian GNU/Linux 12 (bookworm)");
        assert_eq!(OsRelease::parse("ID='arch'\n").id, "arch");
        assert_eq!(OsRelease::parse(""), OsRelease::default());
    }
}
