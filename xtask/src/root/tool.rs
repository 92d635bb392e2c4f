//! mmdebstrap and what it needs: the host's, or fetched privately.

use super::{RootSpec, Sources};
use crate::apt::{Fetcher, Wanted, path_with};
use crate::problem::{Id, refuse};
use crate::runner::Step;
use anyhow::Result;
use std::path::{Path, PathBuf};

/// Perl modules that mmdebstrap loads and that Debian's minimal perl may lack.
const MODULES: &str = "use English; use Getopt::Long; use Pod::Usage; use File::Find; use Term::ANSIColor; \
    use Socket; use Time::HiRes; use Math::BigInt; use Text::ParseWords; use Digest::SHA; use version; \
    require \"syscall.ph\"; require \"sys/ioctl.ph\"; printf \"%vd\", $^V";

/// Where Debian's keys are, on Debian and where its package is installed.
const KEYRINGS: &[&str] =
    &["/usr/share/keyrings/debian-archive-keyring.gpg", "/usr/share/keyrings/debian-archive-keyring.pgp"];

/// How mmdebstrap is called.
pub struct Tool {
    /// `PATH` for it.
    pub path: String,
    /// `PERL5LIB` for it, where the host's perl is minimal.
    pub perl: Option<String>,
    /// Debian's keys, where the sources do not name any.
    pub keyring: Option<PathBuf>,
}

/// Finds mmdebstrap, or fetches it and what it needs and the host lacks.
///
/// Errors: `E_HOST` where there is none and this is neither Debian nor Ubuntu; what fetching runs into.
pub fn find(spec: &RootSpec, state: &Path, sources: &Sources, say: &dyn Fn(&str)) -> Result<Tool> {
    // Most hosts need nothing fetched, and then their own suites are of no interest.
    let mut fetcher: Option<Fetcher> = None;
    let mut fetch = |name: &str, packages: &[&str]| -> Result<PathBuf> {
        let fetcher = match &mut fetcher {
            Some(fetcher) => fetcher,
            None => fetcher.insert(Fetcher::open(state, &spec.suite)?),
        };
        // perl's modules must be of the host's perl; the rest runs anywhere.
        let suites: [&[String]; 2] = match name {
            "perl" => [&fetcher.own, &[]],
            _ => [&fetcher.stable, &fetcher.own],
        };
        let wanted: Vec<Wanted> = packages.iter().map(|p| Wanted::new(p, &suites)).collect();
        Ok(fetcher.bundle(name, &wanted, say)?.dir)
    };
    let path = match which::which("mmdebstrap") {
        Ok(_) => std::env::var("PATH").unwrap_or_default(),
        Err(_) => path_with(&fetch("mmdebstrap", &["mmdebstrap"])?),
    };
    let keyring = match sources.keys.is_empty() {
        true => Some(keyring(&mut fetch)?),
        false => None,
    };
    let perl = match load_modules(None)? {
        Ok(_) => None,
        Err(version) => {
            let packages = [format!("perl-modules-{version}"), format!("libperl{version}")];
            let dir = fetch("perl", &[&packages[0], &packages[1]])?;
            let perl = library(&dir, &version);
            if load_modules(Some(&perl))?.is_err() {
                return refuse(
                    Id::Tool,
                    "perl",
                    "it lacks modules that mmdebstrap needs, also with those of its own packages",
                    "install the package `perl`",
                );
            }
            Some(perl)
        }
    };
    Ok(Tool { path, perl, keyring })
}

fn keyring(fetch: &mut impl FnMut(&str, &[&str]) -> Result<PathBuf>) -> Result<PathBuf> {
    let own = KEYRINGS.iter().map(PathBuf::from).find(|file| file.is_file());
    match own {
        Some(file) => Ok(file),
        None => {
            let dir = fetch("keyring", &["debian-archive-keyring"])?;
            let inside = |file: &&str| dir.join(file.trim_start_matches('/'));
            let mut files = KEYRINGS.iter().map(inside);
            match files.find(|file| file.is_file()) {
                Some(file) => Ok(file),
                None => {
                    refuse(Id::Host, "package debian-archive-keyring", "it holds no keyring", "install it")
                }
            }
        }
    }
}

/// Loads the modules: `Ok` if perl has them, else the major and minor version of a perl that lacks some.
fn load_modules(library: Option<&str>) -> Result<Result<(), String>> {
    let perl = |script: &str| {
        let step = Step::new("perl's modules", ["perl", "-e", script]);
        match library {
            Some(library) => step.env("PERL5LIB", library),
            None => step,
        }
    };
    if perl(MODULES).output()?.status.success() {
        return Ok(Ok(()));
    }
    let version = perl("printf \"%vd\", $^V").read()?;
    Ok(Err(version.rsplit_once('.').map_or(version.as_str(), |(minor, _)| minor).to_owned()))
}

/// `PERL5LIB` for the unpacked packages of a perl.
fn library(dir: &Path, version: &str) -> String {
    let triplets = std::fs::read_dir(dir.join("usr/lib")).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> =
        triplets.map(|e| e.path().join("perl").join(version)).filter(|f| f.is_dir()).collect();
    folders.push(dir.join("usr/share/perl").join(version));
    let folders: Vec<String> = folders.iter().map(|f| f.display().to_string()).collect();
    folders.join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_names_what_depends_on_the_machine_first() {
        let dir = tempfile::tempdir().unwrap();
        let at = |sub: &str| dir.path().join(sub);
        std::fs::create_dir_all(at("usr/lib/x86_64-linux-gnu/perl/5.36")).unwrap();
        std::fs::create_dir_all(at("usr/lib/other")).unwrap();
        let want = [at("usr/lib/x86_64-linux-gnu/perl/5.36"), at("usr/share/perl/5.36")];
        let want: Vec<_> = want.iter().map(|p| p.display().to_string()).collect();
        assert_eq!(library(dir.path(), "5.36"), want.join(":"));
    }
}
