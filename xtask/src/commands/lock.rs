//! `lock`: fix every input, or say that the lock is stale.

use super::App;
use crate::cli::Lock as Args;
use crate::lock::{self, Update, update};
use anyhow::Result;

/// `--check` is offline; `--update` asks the indexes, writes the lock and says what to do next.
pub fn run(app: &App, args: &Args) -> Result<()> {
    let project = app.project()?;
    if args.check {
        let lock = project.lock()?;
        app.out.say(&format!("the lock is made from this catalog: {} releases", lock.releases.len()));
        return Ok(());
    }
    if let Some(name) = &args.release {
        project.catalog.release(name)?;
    }
    let _alone = app.alone()?;
    let folder = project.catalog.folder();
    let old = lock::read(&folder).ok();
    let request = Update {
        release: args.release.as_deref(),
        apt_sources: args.apt_sources.as_deref(),
        state: app.state(),
        progress: &|line| app.out.say(line),
    };
    let new = update(&project.catalog, &project.resolved, old.clone(), &request)?;
    for line in lock::changes(old.as_ref(), &new) {
        app.out.say(&line);
    }
    if app.dry_run {
        app.out.say("nothing was written (--dry-run)");
        return Ok(());
    }
    lock::write(&folder, &new)?;
    app.out.say(&format!("wrote {}; now run `cargo xtask render`", lock::FILE));
    Ok(())
}
