//! A variant: its Dockerfile, the wheels it adds, and what its smoke checks compare with.

use super::requirements::requirements;
use super::{Files, ReleaseView, Templates};
use crate::catalog::{Catalog, Variant};
use crate::lock::LockedRelease;
use crate::resolve::Resolved;
use crate::tiers::{Tier, tiers};
use anyhow::Result;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use tera::Context;

/// What the templates see of a variant.
#[derive(Serialize)]
struct View<'a> {
    name: &'a str,
    #[serde(flatten)]
    variant: &'a Variant,
}

/// Renders one variant of a release into its folder.
pub fn variant(
    catalog: &Catalog,
    release: &LockedRelease,
    name: &str,
    templates: &Templates,
    folder: &Path,
    out: &mut Files,
) -> Result<()> {
    let tiers = tiers(catalog, &release.facts, name);
    let Some(tier) = tiers.last() else {
        return Ok(());
    };
    out.insert(folder.join("Dockerfile"), dockerfile(catalog, release, tier, templates)?);
    if let Some(wheels) = release.variants.get(name) {
        out.insert(folder.join("requirements.txt"), requirements(wheels, |_| true));
    }
    out.insert(folder.join("expect.json"), expectation(&release.facts, &tiers)?);
    Ok(())
}

fn dockerfile(
    catalog: &Catalog,
    release: &LockedRelease,
    tier: &Tier,
    templates: &Templates,
) -> Result<String> {
    let facts = &release.facts;
    let mut context = Context::new();
    context.insert("release", &ReleaseView { name: &facts.release, facts });
    context.insert("variant", &View { name: tier.name, variant: tier.variant });
    context.insert("user", &catalog.user);
    context.insert("wheels", &release.variants.contains_key(tier.name));
    context.insert("home", &home(tier, facts));
    context.insert("toolkit", &tier.toolkit);
    let special = format!("toolkits/{}.tera", facts.cuda_build);
    let special = match tier.toolkit.is_some() && templates.has(&special) {
        true => templates.render(&special, &context)?,
        false => String::new(),
    };
    context.insert("toolkit_steps", special.trim_end());
    context.insert("packages", &packages(catalog, release, tier, templates)?);
    // An include must be named in the template itself, so a variant's own part comes in as text.
    let own = format!("variants/{}.tera", tier.name);
    let own = if templates.has(&own) { templates.render(&own, &context)? } else { String::new() };
    context.insert("own", own.trim_end());
    context.insert("own_files", &templates.with_files.contains(tier.name));
    context.insert("command", &command(tier.variant)?);
    templates.render("variant.Dockerfile.tera", &context)
}

/// `CUDA_HOME`, in the tier that brings the toolkit.
fn home(tier: &Tier, facts: &Resolved) -> Option<String> {
    tier.toolkit.map(|toolkit| toolkit.home.replace("{python}", &facts.python))
}

/// How distribution packages come in: as a layer that was made beside a bootstrapped root, or with the image's own apt.
fn packages(
    catalog: &Catalog,
    release: &LockedRelease,
    tier: &Tier,
    templates: &Templates,
) -> Result<Option<String>> {
    let Some(layer) = &tier.packages else {
        return Ok(None);
    };
    if catalog.roots[&release.root].image.is_none() {
        return Ok(Some("COPY --link --from=packages / /".to_owned()));
    }
    let mut context = Context::new();
    context.insert("packages", &layer.packages);
    let install = templates.render("parts/install.tera", &context)?;
    Ok(Some(format!("USER 0:0\n{}\nUSER {}:0", install.trim_end(), catalog.user.uid)))
}

/// The command in the form that starts no shell.
fn command(variant: &Variant) -> Result<Option<String>> {
    let default = ["python".to_owned()];
    let command = match (variant.command.is_empty(), variant.from == "base") {
        (false, _) => &variant.command[..],
        (true, true) => &default[..],
        (true, false) => return Ok(None),
    };
    let words = command.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
    Ok(Some(format!("[{}]", words.join(", "))))
}

/// What the smoke checks of the image compare with, and which they are.
fn expectation(facts: &Resolved, tiers: &[Tier]) -> Result<String> {
    let arch_list: BTreeMap<&str, &Vec<String>> =
        facts.platforms.iter().map(|(platform, it)| (platform.machine(), &it.arch_list)).collect();
    let programs: BTreeMap<&str, [&str; 1]> =
        tiers.iter().flat_map(Tier::programs).map(|(name, argument)| (name, [argument])).collect();
    let smoke: Vec<&String> = tiers.iter().flat_map(|tier| &tier.variant.smoke).collect();
    let absent = tiers.last().map(|tier| &tier.variant.absent);
    let expect = serde_json::json!({
        "python": facts.python,
        "torch": facts.torch,
        "torchvision": facts.torchvision,
        "torchaudio": facts.torchaudio,
        "cuda": facts.cuda,
        "cuda_build": facts.cuda_build,
        "cudnn": facts.cudnn_at_run_time(),
        "arch_list": arch_list,
        "driver_floor": facts.driver_floor,
        "programs": programs,
        "smoke": smoke,
        "absent": absent,
    });
    Ok(serde_json::to_string_pretty(&expect)? + "\n")
}
