//! `diff` and `size`: what images hold, in a registry or in the engine.

use super::App;
use crate::build::Images;
use crate::cli::{Diff, Size};
use crate::problem::{Id, refuse};
use crate::publish::contents::{Contents, difference, in_engine, in_registry, is_remote, sizes};
use crate::registry::Reference;
use anyhow::Result;

/// Packages, versions, layers and sizes that differ between two images.
pub fn diff(app: &App, args: &Diff) -> Result<()> {
    if is_remote(&args.old) != is_remote(&args.new) {
        return refuse(
            Id::Name,
            &args.new,
            "one image is in a registry and the other in the engine, where layers are counted otherwise",
            "name both with their registry, or both without",
        );
    }
    let (old, new) = (contents(app, &args.old)?, contents(app, &args.new)?);
    let difference = difference(&old, &new);
    app.out.result(&difference.text(), &difference)
}

/// What an image weighs, layer by layer: as it is sent where it is in a registry, unpacked where it is in the engine.
pub fn size(app: &App, args: &Size) -> Result<()> {
    let contents = contents(app, &args.image)?;
    app.out.result(&sizes(&contents), &contents)
}

fn contents(app: &App, image: &str) -> Result<Contents> {
    let project = app.project()?;
    if is_remote(image) {
        let say = |line: &str| app.out.say(line);
        return in_registry(&app.registry(&say)?, &Reference::parse("image", image)?);
    }
    let engine = app.find_engine(&project)?;
    // A look is no reason to fetch an engine: one that is not here yet has no images.
    if !engine.is_new() {
        app.start(&engine)?;
    }
    if !(Images { engine: &engine, catalog: &project.catalog }).has(image)? {
        let cure = "see `docker image ls`, or name the image with its registry";
        return refuse(Id::NoImage, image, "this engine has no such image", cure);
    }
    in_engine(&engine, &project.catalog, image)
}
