//! `lock`: fix every input, or say that the lock is stale.

use super::App;
use crate::cli::Lock as Args;
use crate::lock::{self, Update, update};
use anyhow::Result;
use serde_json::json;

/// `--check` is offline; `--update` asks the indexes, writes the lock and says what to do next.
pub fn run(app: &App, args: &Args) -> Result<()> {
    let project = app.project()?;
    if args.check {
        let lock = project.lock()?;
        let releases = lock.releases.len();
        let words = format!("the lock was made from this catalog: {releases} releases");
        return app.out.done(&words, &json!({"releases": releases, "changes": []}));
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
    let changes = lock::changes(old.as_ref(), &new);
    for line in &changes {
        app.out.say(line);
    }
    let done = json!({"releases": new.releases.len(), "changes": changes});
    if app.dry_run {
        return app.out.done("nothing was written (--dry-run)", &done);
    }
    lock::write(&folder, &new)?;
    app.out.done(&format!("wrote {}; now run `cargo xtask render`", lock::FILE), &done)
}
