//! `freshness`: do the names that move still move? An alarm that needs nothing of the build.

use super::App;
use super::publish::chosen;
use crate::cli::Freshness as Args;
use crate::problem::all_or_nothing;
use crate::publish::state::{Published, table};
use crate::registry::Repository;
use anyhow::Result;
use std::time::SystemTime;

/// Fails for every name that is missing, apart from its siblings, or was proved too long ago.
pub fn run(app: &App, args: &Args) -> Result<()> {
    let project = app.project()?;
    let say = |line: &str| app.out.say(line);
    let registry = app.registry(&say)?;
    let at = Repository::below(&args.what.registry, &project.catalog.repository)?;
    let (mut images, mut problems) = (Vec::new(), Vec::new());
    for (release, variant) in chosen(&project, &args.what)? {
        let image = Published::ask(&registry, &at, &project.catalog, &project.resolved[&release], &variant)?;
        problems.extend(image.stale(&at, *args.max_age, SystemTime::now()));
        images.push(image);
    }
    app.out.result(&table(&images), &images)?;
    all_or_nothing(problems)
}
