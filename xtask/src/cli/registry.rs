//! Commands that speak with a registry.

use clap::Args;
use std::path::PathBuf;

/// `publish`.
#[derive(Args, Debug)]
pub struct Publish {
    /// Where to
    #[arg(long, value_name = "REGISTRY")]
    pub registry: String,
    /// The state that the smoke report must have
    #[arg(long, value_name = "STATE")]
    pub require: Option<String>,
    /// Sign what is published
    #[arg(long)]
    pub sign: bool,
}

/// `freshness`.
#[derive(Args, Debug)]
pub struct Freshness {
    /// Whose tags
    #[arg(long, value_name = "REGISTRY")]
    pub registry: String,
    /// The oldest that a moving tag may be
    #[arg(long, value_name = "DURATION")]
    pub max_age: humantime::Duration,
}

/// `site`.
#[derive(Args, Debug)]
pub struct Site {
    /// The folder to write; a history in it is read first and goes on
    #[arg(long, value_name = "FOLDER", default_value = "target/site")]
    pub out: PathBuf,
    /// Where the pages say that images are pulled from
    #[arg(long, value_name = "REGISTRY")]
    pub registry: Option<String>,
}
