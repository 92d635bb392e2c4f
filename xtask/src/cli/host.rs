//! Commands for the machine that the images run on.

use clap::Args;

/// `run`.
#[derive(Args, Debug)]
pub struct Run {
    /// Which variant
    #[command(flatten)]
    pub one: One,
    /// GPUs to attach: all, 0,1, none
    #[arg(long, value_name = "GPUS")]
    pub gpus: Option<String>,
    /// What to run instead of the variant's own command
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// One variant.
#[derive(Args, Debug)]
pub struct One {
    /// Its name
    #[arg(long, short = 'V', value_name = "NAME")]
    pub variant: String,
}
