//! A private apt: packages fetched with the host's mirrors, keys and proxies, and nothing of the host's apt changed.
//!
//! Lists, cache, sources and configuration live below one folder that the caller names; the host's package database is
//! never read as state and never written. Anything that apt says when it fails becomes a refusal with an id.

mod archives;
mod bundle;
mod candidates;
mod choose;
mod failure;
mod fetcher;
mod host;
mod sources;

pub use archives::{Archives, Family, Source};
pub use bundle::{Bundle, Wanted, path_with};
pub use candidates::Candidate;
pub use failure::refusal;
pub use fetcher::Fetcher;
pub use host::{Host, OsRelease, os_release};

use crate::digest;
use crate::files;
use crate::runner::Step;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Lists younger than this are taken as they are.
const FRESH: Duration = Duration::from_secs(60 * 60);

/// An apt with a state of its own.
pub struct Apt {
    dir: PathBuf,
    sources: Vec<Source>,
}

impl Apt {
    /// An apt below `dir` that knows the packages of `sources`. Nothing is written yet.
    pub fn new(dir: &Path, sources: Vec<Source>) -> Apt {
        Apt { dir: dir.to_owned(), sources }
    }

    /// Fetches the package lists, unless they are fresh and from the same sources.
    ///
    /// A source that is optional is left out at the second try, if the mirror lacks it or serves it too old.
    /// Errors: what [`failure::refusal`] makes of apt's words.
    pub fn update(&self, host: &Host, say: &dyn Fn(&str)) -> Result<()> {
        if self.is_fresh() {
            return Ok(());
        }
        say("reading the package lists");
        let inherited = host_configuration()?;
        self.configure(host, &inherited, &self.sources)?;
        let step = self.step("package lists", &["apt-get", "update"]);
        let mut out = step.output()?;
        if !out.status.success() && failure::blames_archives(&out.stderr) {
            let needed: Vec<_> = self.sources.iter().filter(|s| !s.optional).cloned().collect();
            self.configure(host, &inherited, &needed)?;
            out = step.output()?;
        }
        if !out.status.success() {
            return Err(refusal("apt-get update", &out.stderr));
        }
        files::write(&self.dir.join("updated"), self.key().as_bytes())
    }

    /// Every version of some packages that the sources offer, the highest version of each first.
    pub fn candidates(&self, packages: &[&str]) -> Result<Vec<Candidate>> {
        let ask = |command| {
            let step = self.step("versions on offer", &["apt-cache", command]);
            let out = step.args(packages.iter().copied()).output()?;
            // A package that does not exist is an empty answer here, and refused by whoever needs it.
            Ok::<_, anyhow::Error>(out.stdout)
        };
        Ok(candidates::parse(&ask("madison")?, &ask("show")?))
    }

    /// Downloads exact versions into a folder. apt checks their hashes against the signed lists.
    pub fn download(&self, chosen: &[&Candidate], into: &Path) -> Result<()> {
        // `apt-get download` writes where it stands.
        let chdir = format!("--chdir={}", into.display());
        let step = self
            .step("packages", &["env", &chdir, "apt-get", "download"])
            .args(chosen.iter().map(|c| format!("{}={}", c.package, c.version)));
        let out = step.output()?;
        if out.status.success() { Ok(()) } else { Err(refusal("apt-get download", &out.stderr)) }
    }

    fn step(&self, reason: &str, argv: &[&str]) -> Step {
        Step::new(reason, argv.iter().copied())
            .env("APT_CONFIG", self.dir.join("apt.conf").display().to_string())
            // Its words are read, so they must not be translated.
            .env("LC_ALL", "C")
    }

    fn key(&self) -> String {
        let lines: Vec<String> = self.sources.iter().map(Source::line).collect();
        digest::of_bytes(lines.join("\n").as_bytes())
    }

    fn is_fresh(&self) -> bool {
        let marker = self.dir.join("updated");
        let age = |m: std::fs::Metadata| m.modified().ok()?.elapsed().ok();
        std::fs::read_to_string(&marker).is_ok_and(|key| key == self.key())
            && std::fs::metadata(&marker).ok().and_then(age).is_some_and(|age| age < FRESH)
    }

    fn configure(&self, host: &Host, inherited: &str, sources: &[Source]) -> Result<()> {
        for sub in ["state/lists/partial", "cache/archives/partial", "log"] {
            let folder = self.dir.join(sub);
            std::fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        }
        let lines: String = sources.iter().map(|s| s.line() + "\n").collect();
        files::write_private(&self.dir.join("sources.list"), lines.as_bytes())?;
        files::write_private(&self.dir.join("status"), b"")?;
        let conf = configuration(&self.dir, &host.arch, inherited);
        files::write_private(&self.dir.join("apt.conf"), conf.as_bytes())
    }
}

/// What the host tells apt about reaching archives: proxies, certificates, timeouts; as configuration lines. A CA that
/// the user names in `SSL_CERT_FILE` counts where apt is told of none.
pub fn host_configuration() -> Result<String> {
    let dump = Step::new("the host's proxies", ["apt-config", "dump"]).env("LC_ALL", "C").read()?;
    let own_ca = std::env::var("SSL_CERT_FILE").ok().filter(|file| Path::new(file).is_file());
    Ok(with_ca(acquire_lines(&dump), own_ca.as_deref()))
}

fn with_ca(mut lines: String, ca: Option<&str>) -> String {
    if let Some(file) = ca.filter(|_| !lines.contains("Acquire::https::CAInfo")) {
        lines.push_str(&format!("Acquire::https::CAInfo \"{file}\";\n"));
    }
    lines
}

/// The lines of `apt-config dump` that concern fetching. Hooks, pins and folders of the host stay out: an
/// `APT::Update::Post-Invoke` of the host would act on the host.
fn acquire_lines(dump: &str) -> String {
    const OWN: &[&str] = &[
        "Acquire::IndexTargets",
        "Acquire::Languages",
        "Acquire::CompressionTypes",
        "Acquire::GzipIndexes",
        "Acquire::Changelogs",
        "Acquire::cdrom",
        "Acquire::Retries",
    ];
    dump.lines()
        .filter(|line| line.starts_with("Acquire::"))
        .filter(|line| !line.ends_with(" \"\";"))
        .filter(|line| !OWN.iter().any(|own| line.starts_with(own)))
        .map(|line| format!("{line}\n"))
        .collect()
}

/// The whole configuration of a private apt below `dir`. It names every folder itself and reads no other file, except
/// the host's keys and credentials (`trusted.gpg.d`, `auth.conf.d`), which stay where they are.
fn configuration(dir: &Path, arch: &str, inherited: &str) -> String {
    let dir = dir.display();
    format!(
        "{inherited}\
         Dir::Etc::main \"/dev/null\";\n\
         Dir::Etc::parts \"/dev/null\";\n\
         Dir::Etc::preferences \"/dev/null\";\n\
         Dir::Etc::preferencesparts \"/dev/null\";\n\
         Dir::Etc::sourcelist \"{dir}/sources.list\";\n\
         Dir::Etc::sourceparts \"/dev/null\";\n\
         Dir::State \"{dir}/state\";\n\
         Dir::State::status \"{dir}/status\";\n\
         Dir::Cache \"{dir}/cache\";\n\
         Dir::Cache::srcpkgcache \"\";\n\
         Acquire::GzipIndexes \"true\";\n\
         Dir::Log \"{dir}/log\";\n\
         APT::Architecture \"{arch}\";\n\
         APT::Architectures {{ \"{arch}\"; }};\n\
         APT::Sandbox::User \"root\";\n\
         APT::Update::Error-Mode \"any\";\n\
         Acquire::Languages \"none\";\n\
         Acquire::Retries \"3\";\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_concerns_fetching_is_inherited() {
        let dump = "APT::Update::Post-Invoke:: \"rm -f /var/cache/apt/archives/*.deb\";\n\
            Acquire \"\";\nAcquire::http \"\";\nAcquire::http::Proxy \"http://proxy.example.org:3128\";\n\
            Acquire::https::CAInfo \"/etc/ssl/own.pem\";\nAcquire::Languages:: \"de\";\n\
            Acquire::IndexTargets::deb::DEP-11::MetaKey \"x\";\nDir::Cache \"var/cache/apt\";\n";
        assert_eq!(
            acquire_lines(dump),
            "Acquire::http::Proxy \"http://proxy.example.org:3128\";\n\
             Acquire::https::CAInfo \"/etc/ssl/own.pem\";\n"
        );
    }

    #[test]
    fn the_users_ca_counts_where_apt_knows_none() {
        let line = "Acquire::https::CAInfo \"/a.pem\";\n";
        assert_eq!(with_ca(String::new(), Some("/a.pem")), line);
        assert_eq!(with_ca(line.to_owned(), Some("/b.pem")), line);
        assert_eq!(with_ca(String::new(), None), "");
    }

    #[test]
    fn the_configuration_names_no_folder_of_the_host() {
        let conf = configuration(Path::new("/s/apt"), "arm64", "Acquire::http::Timeout \"9\";\n");
        assert!(conf.starts_with("Acquire::http::Timeout \"9\";\nDir::Etc::main \"/dev/null\";\n"));
        let folders = conf.lines().filter(|l| l.starts_with("Dir::"));
        for line in folders {
            let own = ["\"/s/apt/", "/dev/null", "\"\""].iter().any(|own| line.contains(own));
            assert!(own, "{line}");
        }
        assert!(conf.contains("APT::Architectures { \"arm64\"; };"));
    }
}
