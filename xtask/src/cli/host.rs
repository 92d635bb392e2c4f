//! Commands for the machine that the images run on.

use clap::Args;
use std::path::PathBuf;

/// `doctor`.
#[derive(Args, Debug)]
pub struct Doctor {
    /// Judge the host for a variant too
    #[arg(long, short = 'V', value_name = "NAME", conflicts_with = "image")]
    pub variant: Option<String>,
    /// The release of the variant [default: defaults.release of the catalog]
    #[arg(long, value_name = "NAME", requires = "variant")]
    pub release: Option<String>,
    /// Judge the host for an image too, of this engine or of a registry
    #[arg(long, value_name = "REFERENCE")]
    pub image: Option<String>,
    /// Judge a container that runs
    #[arg(long, value_name = "NAME")]
    pub container: Option<String>,
    /// Read DIR/<probe>.{out,err,rc} and the files below DIR instead of this host's
    #[arg(long, value_name = "DIR")]
    pub fixtures: Option<PathBuf>,
}
