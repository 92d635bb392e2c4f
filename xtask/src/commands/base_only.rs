//! `build --base-only`: bases as OCI layouts and nothing on them, for any platform; the digests alone on standard output.

use super::App;
use super::order::{Order, root_of};
use crate::build::{Maker, Secrets};
use crate::catalog::Platform;
use crate::cli::Build as Args;
use crate::engine::Engine;
use crate::problem::{Id, refuse};
use crate::root::{self, RootLayout};
use crate::tiers::Stacks;
use anyhow::Result;
use serde::Serialize;
use std::collections::BTreeSet;
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

/// A base that is wanted, and everything that was proved of it before something starts.
struct Wanted<'a> {
    release: &'a str,
    root: &'a str,
    maker: Maker<'a>,
    /// The root that was brought along.
    given: Option<RootLayout>,
}

/// Makes the bases of the releases that were chosen, whatever variants stand on them.
pub fn run(app: &App, args: &Args) -> Result<()> {
    let project = app.project()?;
    let releases = project.releases(&args.select)?;
    let (lock, files) = project.proved()?;
    let chosen = releases.iter().map(|release| Ok((root_of(&project, release, &args.select)?, release)));
    let chosen = chosen.collect::<Result<BTreeSet<_>>>()?;
    let _alone = (!app.dry_run).then(|| app.alone()).transpose()?;
    let secrets = Secrets::gather(args.ca_cert.as_deref(), app.state())?;
    let order = Order::new(app, args, &project, (&lock, &files), &secrets);
    if args.root_layout.is_none() && !app.dry_run {
        root::can_run(order.platform)?;
    }
    let wanted = wanted(&order, &chosen)?;
    let engine = app.engine(&project)?;
    let bases = wanted.iter().map(|it| make(&order, &engine, it)).collect::<Result<Vec<Base>>>()?;
    for base in &bases {
        let place = base.layout.display();
        app.out.say(&format!("base of {} for {}: in the OCI layout {place}", base.release, base.platform));
    }
    let digests: Vec<&str> = bases.iter().filter_map(|base| base.digest.as_deref()).collect();
    app.out.result(&digests.join("\n"), &bases)
}

/// The bases of some releases, each on its root.
///
/// Errors: `E_USAGE` where Dockerfiles make them; `E_PLATFORM` where the platform is not locked; those of [`root::given`].
fn wanted<'a>(order: &'a Order, chosen: &BTreeSet<(&'a str, &'a String)>) -> Result<Vec<Wanted<'a>>> {
    let mut all = Vec::new();
    for &(root, release) in chosen {
        let Some(maker) = order.maker(root) else {
            return refuse(
                Id::Usage,
                "--base-only",
                format!("the base on the root {root} comes from its Dockerfile, which makes no layout"),
                "choose a root that is bootstrapped, and the base builder `layers`",
            );
        };
        let locked = &order.lock.releases[release];
        order.tell_heavy([release])?;
        let given = order.args.root_layout.as_deref();
        let given = given.map(|dir| root::given(dir, order.platform, &locked.facts.python)).transpose()?;
        all.push(Wanted { release, root, maker, given });
    }
    Ok(all)
}

/// Makes a base, or tells what is known of it in a dry run.
fn make(order: &Order, engine: &Engine, wanted: &Wanted) -> Result<Base> {
    let Wanted { release, root, maker, given } = wanted;
    // The interpreter that runs here makes the byte code, whatever the base is for.
    let python = bootstrapped(order, root, Platform::host())?;
    let below = match given {
        Some(given) => given.clone(),
        None if order.platform == Platform::host() => python.clone(),
        None => bootstrapped(order, root, order.platform)?,
    };
    let base = match order.app.dry_run {
        true => maker.known(release, &below, &python)?,
        false => maker.provide(release, &below, &python, engine, &|_| ())?,
    };
    let (release, platform) = ((*release).to_owned(), order.platform);
    Ok(Base { release, platform, layout: base.dir, digest: base.digest })
}

fn bootstrapped(order: &Order, root: &str, platform: Platform) -> Result<RootLayout> {
    order.ground_for(platform, root, &Stacks::new(), order.app.dry_run)?.bootstrapped()
}
