//! `check`: do variants.yaml, the lock and the rendered files agree?

use super::App;
use anyhow::Result;

/// Reads everything, starts nothing.
pub fn run(app: &App) -> Result<()> {
    let project = app.project()?;
    let (lock, files) = project.proved()?;
    app.out.say(&format!(
        "{} releases, {} variants, {} rendered files: catalog, lock and images/ agree",
        lock.releases.len(),
        project.catalog.variants.len(),
        files.len()
    ));
    Ok(())
}
