//! `plan`: what would be built or skipped, each with its reason.

use super::build::{by_root, stacks_of};
use super::{App, list};
use crate::build::{Images, Roots};
use crate::catalog::Platform;
use crate::cli::Select;
use crate::plan::Sources;
use anyhow::Result;

/// The decisions of `build`, on the root that is here or else the locked one; nothing is built.
pub fn run(app: &App, select: &Select) -> Result<()> {
    let project = app.project()?;
    let chosen = project.select(select)?;
    let (lock, files) = project.proved()?;
    let engine = app.engine(&project)?;
    let existing = Images { engine: &engine, catalog: &project.catalog }.existing()?;
    let rootfs = project.rootfs()?;
    let sources = Sources { catalog: &project.catalog, lock: &lock, files: &files, rootfs: &rootfs };
    let roots = Roots {
        catalog: &project.catalog,
        lock: &lock,
        platform: select.platform.unwrap_or_else(Platform::host),
        sources: None,
        state: app.state(),
        say: &|line| app.out.say(line),
    };
    let mut plans = Vec::new();
    for (root, chosen) in by_root(&project, &chosen, select)? {
        let ground = roots.known(&root, &stacks_of(&project, &chosen))?;
        for (release, variant) in chosen {
            plans.push(sources.plan(&release, &variant, (&root, &ground), &existing, false)?);
        }
    }
    app.out.result(&list::plans(&plans), &plans)
}
