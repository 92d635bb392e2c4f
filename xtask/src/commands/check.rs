//! `check`: do variants.yaml, the lock and the rendered files agree?

use super::App;
use anyhow::Result;
use serde_json::json;

/// Reads everything, starts nothing.
pub fn run(app: &App) -> Result<()> {
    let project = app.project()?;
    let (lock, files) = project.proved()?;
    let (releases, variants, files) = (lock.releases.len(), project.catalog.variants.len(), files.len());
    app.out.done(
        &format!("{releases} releases, {variants} variants, {files} rendered files: catalog, lock and images/ agree"),
        &json!({"releases": releases, "variants": variants, "files": files}),
    )
}
