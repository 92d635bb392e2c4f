//! `build --base-only`: bases as OCI layouts and nothing on them, for any platform; the digests alone on standard output.

use super::App;
use super::order::{Order, by_root};
use crate::build::Secrets;
use crate::catalog::Platform;
use crate::cli::Build as Args;
use crate::engine::Engine;
use crate::problem::{Id, refuse};
use crate::root::{self, Ground, RootLayout};
use crate::tiers::Stacks;
use anyhow::Result;
use serde::Serialize;
use std::path::PathBuf;

/// A base, as a result.
#[derive(Serialize)]
struct Base {
    release: String,
    platform: Platform,
    /// The OCI image layout that it is in.
    layout: PathBuf,
    /// Of its manifest; a dry run does not know it where its layers were never made.
    digest: Option<String>,
}

/// Makes the bases of the images that were chosen.
pub fn run(app: &App, args: &Args) -> Result<()> {
    let project = app.project()?;
    let chosen = project.select(&args.select)?;
    let (lock, files) = project.proved()?;
    let groups = by_root(&project, &chosen, &args.select)?;
    let _alone = (!app.dry_run).then(|| app.alone()).transpose()?;
    let secrets = Secrets::gather(args.ca_cert.as_deref(), app.state())?;
    let order = Order::new(app, args, &project, (&lock, &files), &secrets);
    if args.root_layout.is_none() && !app.dry_run {
        root::can_run(order.platform)?;
    }
    let engine = app.engine(&project)?;
    let mut bases = Vec::new();
    for (root, chosen) in groups {
        let mut releases: Vec<String> = chosen.into_iter().map(|(release, _)| release).collect();
        releases.dedup();
        bases.extend(of_root(&order, &engine, &root, releases)?);
    }
    for base in &bases {
        let place = base.layout.display();
        app.out.say(&format!("base of {} for {}: in the OCI layout {place}", base.release, base.platform));
    }
    let digests: Vec<&str> = bases.iter().filter_map(|base| base.digest.as_deref()).collect();
    app.out.result(&digests.join("\n"), &bases)
}

/// The bases of some releases on one root.
///
/// Errors: `E_USAGE` where Dockerfiles make them; what making the root and the layers runs into.
fn of_root(order: &Order, engine: &Engine, root: &str, releases: Vec<String>) -> Result<Vec<Base>> {
    let Some(maker) = order.maker(root) else {
        return refuse(
            Id::Usage,
            "--base-only",
            format!("the base on the root {root} comes from its Dockerfile, which makes no layout"),
            "choose a root that is bootstrapped, and the base builder `layers`",
        );
    };
    // The interpreter that runs here makes the byte code, whatever the base is for.
    let python = bootstrapped(order, root, Platform::host())?;
    order.tell_heavy(&releases)?;
    let mut bases = Vec::new();
    for release in releases {
        let below = match &order.args.root_layout {
            Some(dir) => root::given(dir, order.platform, &order.lock.releases[&release].facts.python)?,
            None if order.platform == Platform::host() => python.clone(),
            None => bootstrapped(order, root, order.platform)?,
        };
        let base = match order.app.dry_run {
            true => maker.known(&release, &below, &python)?,
            false => maker.provide(&release, &below, &python, engine)?,
        };
        bases.push(Base { release, platform: order.platform, layout: base.dir, digest: base.digest });
    }
    Ok(bases)
}

fn bootstrapped(order: &Order, root: &str, platform: Platform) -> Result<RootLayout> {
    match order.ground_for(platform, root, &Stacks::new(), order.app.dry_run)? {
        Ground::Made { root, .. } => Ok(root),
        Ground::Image(reference) => anyhow::bail!("{reference} is not bootstrapped"),
    }
}
