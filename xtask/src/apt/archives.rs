//! Which of the host's sources are the distribution's own archives, and what can be asked of them.

use super::Host;
use super::choose::choose;
use super::sources::{self, Entry};
use crate::digest;
use crate::files;
use crate::problem::{Id, refuse};
use anyhow::Result;
use std::path::Path;

/// The distribution that packages come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Debian.
    Debian,
    /// Ubuntu.
    Ubuntu,
}

/// An archive by its address, trusted as the host trusts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archive {
    /// The address, credentials included.
    pub uri: String,
    /// What stands in the brackets of a one-line source: `signed-by=/usr/share/keyrings/…`.
    pub options: Vec<(String, String)>,
}

/// The archives of one distribution, as the host names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archives {
    /// Whose they are.
    pub family: Family,
    /// The main archive.
    pub main: Archive,
    /// The archive of security fixes, where the host has one.
    pub security: Option<Archive>,
    /// Whether the host takes `<suite>-updates` from the main archive.
    pub updates: bool,
    /// The host's own suites in these archives.
    pub host: Vec<Source>,
}

/// One line of a sources.list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Where it is.
    pub archive: Archive,
    /// Its suite.
    pub suite: String,
    /// Its components.
    pub components: Vec<String>,
    /// Whether a mirror may lack it.
    pub optional: bool,
}

impl Family {
    /// Its name in os-release, addresses and names of keyrings.
    pub fn as_str(self) -> &'static str {
        match self {
            Family::Debian => "debian",
            Family::Ubuntu => "ubuntu",
        }
    }

    pub(super) fn components(self) -> Vec<String> {
        let names: &[&str] = match self {
            Family::Debian => &["main"],
            // docker is in universe.
            Family::Ubuntu => &["main", "universe"],
        };
        names.iter().map(|n| (*n).to_owned()).collect()
    }
}

impl Source {
    /// The one-line form.
    pub fn line(&self) -> String {
        let options: Vec<String> = self.archive.options.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let options = match options.is_empty() {
            true => String::new(),
            false => format!("[{}] ", options.join(" ")),
        };
        format!("deb {options}{} {} {}", self.archive.uri, self.suite, self.components.join(" "))
    }
}

impl Archives {
    /// The archives of `family` that the host's own apt uses; `keys` is a folder for keys that stand inside a source.
    ///
    /// Errors: `E_HOST` where the host names none.
    pub fn of_host(family: Family, host: &Host, keys: &Path) -> Result<Archives> {
        let mut entries = sources::read(Path::new("/etc/apt"));
        extract_keys(&mut entries, keys)?;
        match choose(family, host, &entries) {
            Some(archives) => Ok(archives),
            None => refuse(
                Id::Host,
                "/etc/apt/sources.list, /etc/apt/sources.list.d",
                format!("no archive of {} is named there", family.as_str()),
                "name your mirror of it in /etc/apt/sources.list.d; for a root alone, --apt-sources FILE will do",
            ),
        }
    }

    /// The lines for a suite: itself, its updates and its security fixes, as far as the host uses these.
    pub fn suite(&self, suite: &str, optional: bool) -> Vec<Source> {
        let source = |archive: &Archive, suite: String| Source {
            archive: archive.clone(),
            suite,
            components: self.family.components(),
            optional,
        };
        let mut lines = vec![source(&self.main, suite.to_owned())];
        // What moves by itself has neither updates nor fixes apart.
        if !["testing", "unstable", "sid"].contains(&suite) {
            if self.updates {
                lines.push(source(&self.main, format!("{suite}-updates")));
            }
            if let Some(security) = &self.security {
                lines.push(source(security, format!("{suite}-security")));
            }
        }
        lines
    }
}

/// A key that stands inside a deb822 source cannot stand in a one-line source: it is written to a file.
fn extract_keys(entries: &mut [Entry], keys: &Path) -> Result<()> {
    for entry in entries {
        let Some(key) = entry.options.get_mut("signed-by").filter(|k| k.contains("-----BEGIN")) else {
            continue;
        };
        // In deb822 an empty line is a dot.
        let text: String =
            key.trim().lines().map(|l| if l == "." { "\n".into() } else { format!("{l}\n") }).collect();
        let name = digest::of_bytes(text.as_bytes()).replace("sha256:", "");
        let file = keys.join(format!("{}.asc", &name[..16]));
        // A public key: apt's unprivileged methods must be able to read it.
        files::write(&file, text.as_bytes())?;
        *key = file.display().to_string();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_inside_a_source_becomes_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let text = "Types: deb\nURIs: http://m.example.org/debian\nSuites: x\nComponents: main\n\
            Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc\n -----END PGP PUBLIC KEY BLOCK-----\n";
        let mut entries = sources::parse_deb822(text);
        extract_keys(&mut entries, dir.path()).unwrap();
        let file = &entries[0].options["signed-by"];
        let key = std::fs::read_to_string(file).unwrap();
        assert!(key.starts_with("-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nabc\n"), "{key}");
    }
}
