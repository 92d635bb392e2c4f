//! Commands for the machine that the images run on.

use clap::Args;
use std::path::PathBuf;

/// `doctor`.
#[derive(Args, Debug)]
pub struct Doctor {
    /// Also check whether this variant works here
    #[arg(long, short = 'V', value_name = "NAME", conflicts_with = "image")]
    pub variant: Option<String>,
    /// The variant's release [default: the catalog's defaults.release]
    #[arg(long, value_name = "NAME", requires = "variant")]
    pub release: Option<String>,
    /// Also check an image, from this engine or a registry
    #[arg(long, value_name = "REFERENCE")]
    pub image: Option<String>,
    /// Check a running container
    #[arg(long, value_name = "NAME")]
    pub container: Option<String>,
    /// Read DIR/<probe>.{out,err,rc} and the files below DIR instead of this host's
    #[arg(long, value_name = "DIR")]
    pub fixtures: Option<PathBuf>,
}
