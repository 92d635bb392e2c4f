//! `render`: write Dockerfiles and the bake file, or say that they would change.

use super::App;
use crate::cli::Check;
use crate::render;
use anyhow::Result;
use serde_json::json;

/// Writes, or with `--check` (or `--dry-run`) only compares.
pub fn run(app: &App, args: &Check) -> Result<()> {
    let project = app.project()?;
    let files = project.render(&project.lock()?)?;
    let folder = project.catalog.folder();
    if args.check || app.dry_run {
        render::check(&folder, &files)?;
        let done = json!({"files": files.len(), "changed": []});
        return app.out.done(&format!("{} rendered files are up to date", files.len()), &done);
    }
    let _alone = app.alone()?;
    let changed = render::write(&folder, &files)?;
    for path in &changed {
        app.out.say(&format!("wrote {}", path.display()));
    }
    let words = format!("{} of {} files changed", changed.len(), files.len());
    app.out.done(&words, &json!({"files": files.len(), "changed": changed}))
}
