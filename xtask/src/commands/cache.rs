//! `cache`: what is kept for the next build, for all checkouts of this user.

use super::App;
use crate::cli::Cache as Action;
use crate::hold::Hold;
use crate::out::gigabytes;
use crate::wheels;
use anyhow::Result;
use serde::Serialize;
use std::time::{Duration, SystemTime};

/// What was removed, as a result.
#[derive(Serialize)]
struct Freed {
    bytes: u64,
}

/// Tells what is there, or removes what nobody used.
pub fn run(app: &App, action: Action) -> Result<()> {
    match action {
        Action::Status => {
            let kept = wheels::kept(app.cache())?;
            let text = format!(
                "folder  {}\nwheels  {}\nlayers  {}",
                kept.folder.display(),
                gigabytes(kept.wheels),
                gigabytes(kept.layers)
            );
            app.out.result(&text, &kept)
        }
        Action::Prune { .. } if app.dry_run => {
            let kept = wheels::kept(app.cache())?;
            app.out.done("what was not used for that long would be removed", &kept)
        }
        Action::Prune { unused_for } => {
            let say = |line: &str| app.out.say(line);
            let _alone = Hold::wait(app.cache(), wheels::HOLD, &say)?;
            let unused: Duration = *unused_for;
            let since = SystemTime::now().checked_sub(unused).unwrap_or(SystemTime::UNIX_EPOCH);
            let bytes = wheels::prune(app.cache(), since)?;
            app.out.done(&format!("{} are free again", gigabytes(bytes)), &Freed { bytes })
        }
    }
}
