//! Commands that speak with a registry.

use super::platform;
use crate::catalog::Platform;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// A registry, and which images of it.
#[derive(Args, Clone, Debug)]
pub struct Published {
    /// The registry, with a path where images have one: registry.example.org/team
    #[arg(long, value_name = "REGISTRY")]
    pub registry: String,
    /// The release; may be given several times [default: defaults.release of the catalog]
    #[arg(long, value_name = "NAME")]
    pub release: Vec<String>,
    /// The variant; may be given several times [default: all]
    #[arg(long, short = 'V', value_name = "NAME")]
    pub variant: Vec<String>,
}

/// `publish`.
#[derive(Args, Debug)]
pub struct Publish {
    /// Where to, and what: all of it is published, or nothing moves
    #[command(flatten)]
    pub what: Published,
    /// A platform that each image must have; may be given several times [default: defaults.platforms of the catalog]
    #[arg(long, value_name = "OS/ARCH", value_parser = platform)]
    pub platform: Vec<Platform>,
    /// The day in the names that never move [default: the commit's]
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = day)]
    pub release_date: Option<String>,
    /// The state that every smoke report must have
    #[arg(long, value_name = "STATE", value_enum)]
    pub require: Option<Require>,
    /// Take what was built from no commit, or beside one; its label says so
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
    /// Whose tags
    #[command(flatten)]
    pub what: Published,
    /// How long ago the image of a moving tag may have been proved: 2d, 36h
    #[arg(long, value_name = "DURATION")]
    pub max_age: humantime::Duration,
}

/// `nightly`.
#[derive(Args, Debug)]
pub struct Nightly {
    /// Where to, and what
    #[command(flatten)]
    pub what: Published,
    /// GPUs for the smoke test, as docker takes them; nothing is published then that was not tested on one
    #[arg(long, value_name = "GPUS")]
    pub gpus: Option<String>,
    /// How long ago the image of a moving tag may have been proved in the end
    #[arg(long, value_name = "DURATION", default_value = "2d")]
    pub max_age: humantime::Duration,
    /// The folder of the catalogue site: its pages are written anew, its history goes on
    #[arg(long, value_name = "FOLDER", default_value = "target/site")]
    pub site: PathBuf,
}

/// `prune`.
#[derive(Args, Debug)]
pub struct Prune {
    /// Whose tags
    #[arg(long, value_name = "REGISTRY")]
    pub registry: String,
    /// How many immutable tags of each image stay; what a moving tag points at stays anyway
    #[arg(long, value_name = "N")]
    pub keep: usize,
    /// Candidates that were tested longer ago and not published go too
    #[arg(long, value_name = "DURATION", default_value = "7d")]
    pub candidates: humantime::Duration,
    /// Remove what would go
    #[arg(long)]
    pub delete: bool,
}

/// `list`.
#[derive(Args, Debug)]
pub struct List {
    /// What this registry has of them, with the state of each
    #[arg(long, value_name = "REGISTRY")]
    pub registry: Option<String>,
}

/// `site`.
#[derive(Args, Debug)]
pub struct Site {
    /// The folder to write; a history in it is read first and goes on
    #[arg(long, value_name = "FOLDER", default_value = "target/site")]
    pub out: PathBuf,
    /// Whose published images the pages are about, and are pulled from [default: what was built here]
    #[arg(long, value_name = "REGISTRY")]
    pub registry: Option<String>,
}

/// Who signs, and how.
#[derive(Args, Debug)]
#[command(group(clap::ArgGroup::new("signer").args(["key", "identity"])))]
pub struct Sign {
    /// Sign every digest with cosign, and verify the signatures, before a name moves
    #[arg(long, requires = "signer")]
    pub sign: bool,
    /// The key: a file, or an address in a key service; its password is taken from COSIGN_PASSWORD
    #[arg(long, value_name = "KEY", requires = "sign")]
    pub key: Option<String>,
    /// Sign with the identity that is there, which must be this one: a workflow's address, a mail address
    #[arg(long, value_name = "SUBJECT", requires = "issuer", requires = "sign")]
    pub identity: Option<String>,
    /// Who vouches for the identity
    #[arg(long, value_name = "URL", requires = "identity")]
    pub issuer: Option<String>,
    /// Do not write signatures into the public transparency log
    #[arg(long, requires = "key")]
    pub no_transparency_log: bool,
}

/// `diff`.
#[derive(Args, Debug)]
pub struct Diff {
    /// The image that there was
    #[arg(value_name = "OLD")]
    pub old: String,
    /// The image that there is
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
