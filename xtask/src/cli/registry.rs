//! Commands that speak with a registry.

use super::{duration, platform};
use crate::catalog::Platform;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// A registry, and which images of it.
#[derive(Args, Clone, Debug)]
pub struct Published {
    /// The registry and path: registry.example.org/team
    #[arg(long, value_name = "REGISTRY")]
    pub registry: String,
    /// A release; repeatable [default: the catalog's defaults.release]
    #[arg(long, value_name = "NAME")]
    pub release: Vec<String>,
    /// A variant; repeatable [default: all]
    #[arg(long, short = 'V', value_name = "NAME")]
    pub variant: Vec<String>,
}

/// `publish`.
#[derive(Args, Debug)]
pub struct Publish {
    /// Where to, and what: all of it is published, or nothing moves
    #[command(flatten)]
    pub what: Published,
    /// A platform that every image must have; repeatable [default: the catalog's defaults.platforms]
    #[arg(long, value_name = "OS/ARCH", value_parser = platform)]
    pub platform: Vec<Platform>,
    /// The date in the immutable tags [default: the commit's]
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = day)]
    pub release_date: Option<String>,
    /// The state that every smoke report must have
    #[arg(long, value_name = "STATE", value_enum)]
    pub require: Option<Require>,
    /// Publish even without a clean commit; a label says so
    #[arg(long)]
    pub allow_dirty: bool,
    /// Signatures
    #[command(flatten)]
    pub sign: Sign,
}

/// A state that can be required.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Require {
    /// A GPU took part in the smoke test
    GpuTested,
}

/// `2026-11-30` as `20261130`.
fn day(text: &str) -> Result<String, String> {
    let parts: Vec<&str> = text.split('-').collect();
    let digits = |part: &str, n: usize| part.len() == n && part.bytes().all(|b| b.is_ascii_digit());
    match parts[..] {
        [year, month, day] if digits(year, 4) && digits(month, 2) && digits(day, 2) => Ok(parts.concat()),
        _ => Err("write it as 2026-11-30".to_owned()),
    }
}

/// `freshness`.
#[derive(Args, Debug)]
pub struct Freshness {
    /// The registry and path: registry.example.org/team
    #[command(flatten)]
    pub what: Published,
    /// Maximum time since a moving tag's image was tested: 2d, 36h
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub max_age: humantime::Duration,
}

/// `nightly`.
#[derive(Args, Debug)]
pub struct Nightly {
    /// Where to, and what
    #[command(flatten)]
    pub what: Published,
    /// GPUs for the smoke test, in docker syntax; then only what was tested on a GPU is published
    #[arg(long, value_name = "GPUS")]
    pub gpus: Option<String>,
    /// Maximum time since a moving tag's image was tested, checked at the end
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "2d")]
    pub max_age: humantime::Duration,
    /// The folder of the catalogue site: pages are rewritten, its history is continued
    #[arg(long, value_name = "FOLDER", default_value = "target/site")]
    pub site: PathBuf,
    /// Who signs what is published
    #[command(flatten)]
    pub sign: Sign,
}

/// `prune`.
#[derive(Args, Debug)]
pub struct Prune {
    /// The registry and path: registry.example.org/team
    #[arg(long, value_name = "REGISTRY")]
    pub registry: String,
    /// How many immutable tags to keep per image; what a moving tag points at always stays
    #[arg(long, value_name = "N")]
    pub keep: usize,
    /// Also remove unpublished candidates tested longer ago than this
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "7d")]
    pub candidates: humantime::Duration,
    /// Really remove it
    #[arg(long)]
    pub delete: bool,
}

/// `list`.
#[derive(Args, Debug)]
pub struct List {
    /// Show what this registry has, with the state of each
    #[arg(long, value_name = "REGISTRY")]
    pub registry: Option<String>,
}

/// `site`.
#[derive(Args, Debug)]
pub struct Site {
    /// The folder to write; a history in it is continued
    #[arg(long, value_name = "FOLDER", default_value = "target/site")]
    pub out: PathBuf,
    /// Describe the images published in this registry [default: the ones built here]
    #[arg(long, value_name = "REGISTRY")]
    pub registry: Option<String>,
}

/// Who signs, and how.
#[derive(Args, Clone, Debug, Default)]
#[command(group(clap::ArgGroup::new("signer").args(["key", "identity"])))]
pub struct Sign {
    /// Sign every digest with cosign and verify the signatures before any tag moves
    #[arg(long, requires = "signer")]
    pub sign: bool,
    /// The key: a file, or a KMS URI; its password comes from COSIGN_PASSWORD
    #[arg(long, value_name = "KEY", requires = "sign")]
    pub key: Option<String>,
    /// Sign keyless, as this identity: the URL of a workflow, or an e-mail address
    #[arg(long, value_name = "SUBJECT", requires = "issuer", requires = "sign")]
    pub identity: Option<String>,
    /// The issuer that vouches for the identity
    #[arg(long, value_name = "URL", requires = "identity")]
    pub issuer: Option<String>,
    /// Keep signatures out of the public transparency log
    #[arg(long, requires = "key")]
    pub no_transparency_log: bool,
}

impl Sign {
    /// The options by which the same is said again.
    pub fn words(&self) -> Vec<String> {
        let named = [("--key", &self.key), ("--identity", &self.identity), ("--issuer", &self.issuer)];
        let named = named.into_iter().filter_map(|(flag, value)| Some([flag.to_owned(), value.clone()?]));
        let switches = [(self.sign, "--sign"), (self.no_transparency_log, "--no-transparency-log")];
        let switches = switches.into_iter().filter(|(on, _)| *on).map(|(_, flag)| flag.to_owned());
        switches.chain(named.flatten()).collect()
    }
}

/// `diff`.
#[derive(Args, Debug)]
pub struct Diff {
    /// The older image
    #[arg(value_name = "OLD")]
    pub old: String,
    /// The newer image
    #[arg(value_name = "NEW")]
    pub new: String,
}

/// `size`.
#[derive(Args, Debug)]
pub struct Size {
    /// The image, in a registry or in the engine
    #[arg(value_name = "REFERENCE")]
    pub image: String,
}
