//! Which of the host's sources are the distribution's own archives, and what can be asked of them.

use super::sources::{self, Entry};
use super::{Host, write_private};
use crate::digest;
use crate::problem::{Id, refuse};
use anyhow::Result;
use std::path::Path;

/// Suites that are the distribution itself under another name.
const ALIASES: &[&str] = &["stable", "testing", "unstable", "sid", "oldstable"];

/// Options of the host that decide whether an archive is trusted; the others (`arch`, `lang`, …) are not taken over.
const TRUST: &[&str] = &["signed-by", "trusted", "check-valid-until", "check-date", "allow-insecure"];

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

    fn components(self) -> Vec<String> {
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
                "name your mirror of it in /etc/apt/sources.list.d, or give a sources file with --apt-sources",
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

/// An address without the `user:password@` of its authority, wherever it stands in a text.
pub fn strip_credentials(text: &str) -> String {
    let mut parts = text.split("://");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| c == '/' || c.is_whitespace()).unwrap_or(part.len());
        let keep = part[..end].rfind('@').map_or(0, |at| at + 1);
        out.push_str("://");
        out.push_str(&part[keep..]);
    }
    out
}

/// Picks the archives out of everything the host names.
fn choose(family: Family, host: &Host, entries: &[Entry]) -> Option<Archives> {
    let native = host.os.id == family.as_str();
    let ours = |e: &&Entry| e.components.iter().any(|c| c == "main") && !e.uris.is_empty();
    let entries: Vec<&Entry> = entries.iter().filter(ours).collect();
    let known = |suite: &String| *suite == host.os.codename || ALIASES.contains(&suite.as_str());
    let main = best(entries.iter().filter(|e| {
        !e.suites.iter().any(|s| is_security(s))
            && if native { e.suites.iter().any(known) } else { is_of(family, e) }
    }), family)?;
    let security = best(entries.iter().filter(|e| {
        e.suites.iter().any(|s| is_security(s)) && (native || is_of(family, e))
    }), family);
    let same = |e: &&&Entry| e.uris[0] == main.uris[0];
    let updates = entries.iter().filter(same).any(|e| e.suites.iter().any(|s| s.ends_with("-updates")));
    let host = entries
        .iter()
        .filter(|e| native && (e.uris[0] == main.uris[0] || security.is_some_and(|s| s.uris[0] == e.uris[0])))
        .flat_map(|e| sources_of(family, e))
        .collect();
    Some(Archives { family, main: archive(main), security: security.map(archive), updates, host })
}

fn is_security(suite: &str) -> bool {
    suite.ends_with("-security") || suite.ends_with("/updates")
}

/// The entry that most looks like the distribution's own; the first of equals, which is the one apt prefers.
fn best<'a>(entries: impl Iterator<Item = &'a &'a Entry>, family: Family) -> Option<&'a Entry> {
    let mut best: Option<(&Entry, u8)> = None;
    for entry in entries {
        let score = likeness(family, entry);
        if best.is_none_or(|(_, top)| score > top) {
            best = Some((entry, score));
        }
    }
    best.map(|(entry, _)| entry)
}

/// How much an entry looks like the distribution's own, and not like a third party's for the same suite.
fn likeness(family: Family, entry: &Entry) -> u8 {
    let name = family.as_str();
    let keyring = entry.options.get("signed-by").is_some_and(|k| k.contains(&format!("{name}-archive")));
    let last = entry.uris[0].trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let path = last == name || last == format!("{name}-security");
    let updates = entry.suites.iter().any(|s| s.ends_with("-updates"));
    4 * u8::from(keyring) + 2 * u8::from(path) + u8::from(updates)
}

fn is_of(family: Family, entry: &Entry) -> bool {
    likeness(family, entry) >= 2
}

fn archive(entry: &Entry) -> Archive {
    let trust = |key: &&str| Some(((*key).to_owned(), entry.options.get(*key)?.replace('\n', ",")));
    Archive {
        uri: entry.uris[0].clone(),
        options: TRUST.iter().filter_map(trust).collect(),
    }
}

fn sources_of(family: Family, entry: &Entry) -> Vec<Source> {
    let source = |suite: &String| Source {
        archive: archive(entry),
        suite: suite.clone(),
        components: family.components(),
        optional: false,
    };
    entry.suites.iter().map(source).collect()
}

/// A key that stands inside a deb822 source cannot stand in a one-line source: it is written to a file.
fn extract_keys(entries: &mut [Entry], keys: &Path) -> Result<()> {
    for entry in entries {
        let Some(key) = entry.options.get_mut("signed-by").filter(|k| k.contains("-----BEGIN")) else {
            continue;
        };
        // In deb822 an empty line is a dot.
        let text: String = key.trim().lines().map(|l| if l == "." { "\n".into() } else { format!("{l}\n") }).collect();
        std::fs::create_dir_all(keys)?;
        let name = digest::of_bytes(text.as_bytes()).replace("sha256:", "");
        let file = keys.join(format!("{}.asc", &name[..16]));
        write_private(&file, &text)?;
        *key = file.display().to_string();
    }
    Ok(())
}
