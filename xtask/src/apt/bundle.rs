//! Packages that are fetched and unpacked in a folder of their own, never installed.

use super::candidates::choose;
use super::{Apt, Candidate, Host, refusal};
use crate::digest;
use crate::files;
use crate::problem::{Id, refuse};
use crate::runner::Step;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The file inside a bundle that says what it holds. It is written last.
const STAMP: &str = "bundle.json";

/// A package that is wanted.
#[derive(Clone, Debug, Serialize)]
pub struct Wanted {
    /// Its name.
    pub package: String,
    /// Groups of suites in the order of preference; the first that has a version for this host decides.
    pub suites: Vec<Vec<String>>,
    /// Whether it may be missing.
    pub optional: bool,
}

/// An unpacked set of packages.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bundle {
    /// Where its `usr` is.
    #[serde(skip)]
    pub dir: PathBuf,
    /// What it was made for: the wish and the host.
    key: String,
    /// Exact versions by package.
    pub versions: BTreeMap<String, String>,
}

impl Wanted {
    /// A package that must be there.
    pub fn new(package: &str, suites: &[&[String]]) -> Wanted {
        Wanted {
            package: package.to_owned(),
            suites: suites.iter().map(|group| group.to_vec()).collect(),
            optional: false,
        }
    }

    /// The same, but it may be missing.
    pub fn optional(self) -> Wanted {
        Wanted { optional: true, ..self }
    }
}

impl Bundle {
    /// What a folder holds, if it holds a whole bundle.
    pub fn read(dir: &Path) -> Option<Bundle> {
        let text = std::fs::read_to_string(dir.join(STAMP)).ok()?;
        let bundle: Bundle = serde_json::from_str(&text).ok()?;
        Some(Bundle { dir: dir.to_owned(), ..bundle })
    }

    /// `PATH` with the bundle's programs before the caller's.
    pub fn path(&self) -> String {
        path_with(&self.dir)
    }
}

/// `PATH` with the programs of a bundle's folder before the caller's; the folder need not be there yet.
pub fn path_with(dir: &Path) -> String {
    let own = ["usr/sbin", "usr/bin"].map(|sub| dir.join(sub).display().to_string());
    let callers = std::env::var("PATH").unwrap_or_default();
    // Programs of the administrator are not on everybody's PATH.
    format!("{}:{callers}:/usr/sbin:/usr/bin:/sbin:/bin", own.join(":"))
}

/// The bundle in `dir`: as it is if it was made for this wish and host, otherwise fetched anew.
///
/// It is made beside `dir` and renamed, so that an interrupted fetch is never taken for a whole one.
/// Errors: `E_HOST` where nothing fits the host's C library; otherwise what apt's words mean.
pub fn provide(dir: &Path, wanted: &[Wanted], apt: &Apt, host: &Host, say: &dyn Fn(&str)) -> Result<Bundle> {
    let key = digest::of_json(&(wanted, &host.os.id, &host.os.codename, &host.libc, &host.arch))?;
    if let Some(bundle) = Bundle::read(dir).filter(|bundle| bundle.key == key) {
        return Ok(bundle);
    }
    apt.update(host, say)?;
    let names: Vec<&str> = wanted.iter().map(|w| w.package.as_str()).collect();
    let candidates = apt.candidates(&names)?;
    let chosen = choose_all(wanted, &candidates, host)?;
    say(&format!("fetching {}", listing(&chosen)));
    let parent = dir.parent().unwrap_or(dir);
    let work = files::work_folder(parent)?;
    let unpacked = fetch(apt, &chosen, work.path())?;
    let versions = chosen.iter().map(|c| (c.package.clone(), c.version.clone())).collect();
    let bundle = Bundle { dir: dir.to_owned(), key, versions };
    files::write(&unpacked.join(STAMP), &serde_json::to_vec_pretty(&bundle)?)?;
    put(&unpacked, dir, work.path())?;
    Ok(bundle)
}

/// Downloads and unpacks below `work`; the folder with the result.
fn fetch(apt: &Apt, chosen: &[&Candidate], work: &Path) -> Result<PathBuf> {
    let [debs, unpacked] = ["debs", "unpacked"].map(|name| work.join(name));
    std::fs::create_dir(&debs)?;
    std::fs::create_dir(&unpacked)?;
    apt.download(chosen, &debs)?;
    for deb in std::fs::read_dir(&debs)? {
        let deb = deb?.path().display().to_string();
        let to = unpacked.display().to_string();
        let out = Step::new("unpack a package", ["dpkg-deb", "--extract", &deb, &to])
            .env("LC_ALL", "C")
            .output()?;
        if !out.status.success() {
            return Err(refusal("dpkg-deb --extract", &out.stderr));
        }
    }
    Ok(unpacked)
}

/// Moves a finished folder to its place; what was there before goes with `work`.
fn put(made: &Path, place: &Path, work: &Path) -> Result<()> {
    if place.exists() {
        std::fs::rename(place, work.join("old"))?;
    }
    std::fs::rename(made, place).with_context(|| format!("moving to {}", place.display()))
}

fn listing(chosen: &[&Candidate]) -> String {
    let one = |c: &&Candidate| format!("{} {} ({})", c.package, c.version, c.suite);
    chosen.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// A candidate for every wish, or a refusal that names the first without one.
fn choose_all<'a>(wanted: &[Wanted], candidates: &'a [Candidate], host: &Host) -> Result<Vec<&'a Candidate>> {
    let mut chosen = Vec::new();
    for wish in wanted {
        match choose(&wish.package, &wish.suites, candidates, &host.libc) {
            Some(candidate) => chosen.push(candidate),
            None if wish.optional => {}
            None => return none_fits(wish, candidates, host),
        }
    }
    Ok(chosen)
}

fn none_fits<T>(wish: &Wanted, candidates: &[Candidate], host: &Host) -> Result<T> {
    let suites = wish.suites.concat().join(", ");
    let seen: Vec<String> = candidates
        .iter()
        .filter(|c| c.package == wish.package && wish.suites.concat().contains(&c.suite))
        .map(|c| format!("{} ({}) needs {}", c.version, c.suite, c.libc.as_deref().unwrap_or("any")))
        .collect();
    let what = match seen.is_empty() {
        true => format!("none of {suites} has it, as the host's mirrors tell"),
        false => format!("the host's C library is {}, but {}", host.libc, seen.join(", ")),
    };
    let cure = format!("install `{}` yourself, or use a newer Debian or Ubuntu", wish.package);
    refuse(Id::Host, format!("package {}", wish.package), what, cure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apt::OsRelease;

    fn host() -> Host {
        Host { os: OsRelease::default(), libc: "2.36-9".into(), arch: "amd64".into() }
    }

    fn candidate(package: &str, suite: &str, libc: &str) -> Candidate {
        Candidate {
            package: package.into(),
            version: "1".into(),
            suite: suite.into(),
            libc: Some(libc.into()),
        }
    }

    #[test]
    fn every_wish_is_met_or_the_refusal_says_what_was_seen() {
        let all = [candidate("a", "x", "2.38"), candidate("a", "y", "2.34"), candidate("b", "x", "2.38")];
        let groups: [&[String]; 2] = [&["x".to_owned()], &["y".to_owned()]];
        let (a, b) = (Wanted::new("a", &groups), Wanted::new("b", &groups));
        assert_eq!(choose_all(std::slice::from_ref(&a), &all, &host()).unwrap()[0].suite, "y");
        assert_eq!(choose_all(&[a.clone(), b.clone().optional()], &all, &host()).unwrap().len(), 1);
        let said = choose_all(&[a, b], &all, &host()).unwrap_err().to_string();
        assert!(said.contains("E_HOST") && said.contains("2.36-9, but 1 (x) needs 2.38"), "{said}");
        let none = choose_all(&[Wanted::new("c", &groups)], &all, &host()).unwrap_err().to_string();
        assert!(none.contains("none of x, y has it"), "{none}");
    }

    #[test]
    fn a_folder_without_its_stamp_is_no_bundle() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Bundle::read(dir.path()).is_none());
        std::fs::write(dir.path().join(STAMP), r#"{"key":"k","versions":{"a":"1"}}"#).unwrap();
        let bundle = Bundle::read(dir.path()).unwrap();
        assert_eq!(bundle.versions["a"], "1");
        assert!(bundle.path().starts_with(&format!("{}/usr/sbin:", dir.path().display())));
    }
}
