//! `lock --update`: the one command that asks indexes what is there.

use super::uv::Uv;
use super::{Lock, LockedRelease, LockedRoot, Wheel, inputs, package_stacks, wheels};
use crate::catalog::{Catalog, Platform};
use crate::problem::{Id, refuse};
use crate::resolve::{Channel, Resolved};
use crate::root::{self, RootSpec};
use crate::tiers::tiers;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::path::Path;
use std::thread::ScopedJoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds.
const DAY: u64 = 24 * 60 * 60;

/// What an update may ask and where it may keep things.
pub struct Update<'a> {
    /// Only this release; the others keep what they have.
    pub release: Option<&'a str>,
    /// An apt sources file of the user's.
    pub apt_sources: Option<&'a Path>,
    /// The folder for caches and private tools.
    pub state: &'a Path,
    /// Told what goes on.
    pub progress: &'a (dyn Fn(&str) + Sync),
}

/// Makes the lock anew; what `update.release` leaves out keeps the pins of `old`.
///
/// Errors: `E_NETWORK`, `E_TLS`, `E_TOOL`, or `E_NO_WHEEL_CHANNEL` with uv's explanation.
pub fn update(
    catalog: &Catalog,
    resolved: &BTreeMap<String, Resolved>,
    old: Option<Lock>,
    update: &Update,
) -> Result<Lock> {
    let uv = Uv::find(update.state, update.progress)?;
    let inputs = inputs(catalog, resolved)?;
    // With one release alone, whatever is not made from something else now stays as it is, and so does the date.
    let old = old.filter(|_| update.release.is_some());
    let same = |part: &str| old.as_ref().filter(|old| old.inputs.get(part) == inputs.get(part));
    let mut lock = Lock {
        epoch: old.as_ref().map_or_else(epoch, |old| Ok(old.epoch))?,
        uv: uv.version()?,
        roots: BTreeMap::new(),
        packages: BTreeMap::new(),
        releases: BTreeMap::new(),
        inputs: inputs.clone(),
    };
    // The resolver waits for the index most of the time: all releases wait together.
    lock.releases = std::thread::scope(|scope| {
        let resolve = |(name, facts): (&'_ String, &'_ Resolved)| {
            let asked = update.release.is_none_or(|only| only == name);
            let kept = same(&format!("releases.{name}")).and_then(|old| old.releases.get(name));
            match kept.filter(|_| !asked) {
                Some(kept) => Ok(kept.clone()),
                None => lock_release(catalog, name, facts, &uv, update),
            }
        };
        let running: Vec<_> = resolved.iter().map(|it| (it.0, scope.spawn(move || resolve(it)))).collect();
        let done = |(name, thread): (&String, ScopedJoinHandle<Result<LockedRelease>>)| {
            let release = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok((name.clone(), release?))
        };
        running.into_iter().map(done).collect::<Result<_>>()
    })?;
    lock_roots(catalog, resolved, &mut lock, update, same)?;
    Ok(lock)
}

/// The wheel that a version of one of a release's packages has on a platform; the others keep theirs.
///
/// Errors: `E_NO_WHEEL_CHANNEL` with uv's explanation where it does not go with them; `E_NETWORK`, `E_TLS`, `E_TOOL`.
pub fn other_wheel(
    uv: &Uv,
    release: &LockedRelease,
    platform: Platform,
    name: &str,
    version: &str,
) -> Result<Wheel> {
    let fixed: Vec<Wheel> = release.wheels(platform)?.iter().filter(|it| it.name != name).cloned().collect();
    let wanted = format!("{name}=={version}\n");
    let found = wheels::parse(&uv.resolve(&wanted, &fixed, &release.facts.python, platform)?)?;
    found
        .into_iter()
        .find(|wheel| wheel.name == name)
        .with_context(|| format!("uv resolved {wanted} to nothing"))
}

/// Makes the roots and the layers of packages on them, but for those whose input, by its name, is the `same` as in an old
/// lock: these it gives.
fn lock_roots<'o>(
    catalog: &Catalog,
    resolved: &BTreeMap<String, Resolved>,
    lock: &mut Lock,
    update: &Update,
    same: impl Fn(&str) -> Option<&'o Lock>,
) -> Result<()> {
    let (host, epoch) = (Platform::host(), lock.epoch);
    let here = |root: &str| {
        let sources = update.apt_sources.map(Path::to_owned);
        RootSpec::new(catalog, root, host, epoch, sources)
    };
    let made = |spec: &RootSpec| Ok::<_, anyhow::Error>(BTreeMap::from([(host, lock_root(spec, update)?)]));
    for name in catalog.roots.iter().filter(|(_, root)| root.image.is_none()).map(|(name, _)| name) {
        let kept = same(&format!("roots.{name}")).and_then(|old| old.roots.get(name));
        if kept.is_some() || catalog.defaults.platforms.contains(&host) {
            let root = kept.map_or_else(|| made(&here(name)), |kept| Ok(kept.clone()))?;
            lock.roots.insert(name.clone(), root);
        }
    }
    for (root, stacks) in package_stacks(catalog, resolved)? {
        // The lower ones are part of the higher ones: they come first.
        let mut stacks: Vec<_> = stacks.into_iter().collect();
        stacks.sort_by_key(|(_, stack)| stack.len());
        for (name, stack) in stacks {
            let old = same(&format!("packages.{root}.{name}"));
            let layer = match old.and_then(|old| old.packages.get(&root)?.get(&name)) {
                Some(kept) => kept.clone(),
                None => {
                    (update.progress)(&format!("packages of {name}"));
                    made(&stack.iter().fold(here(&root), RootSpec::with))?
                }
            };
            lock.packages.entry(root.clone()).or_default().insert(name, layer);
        }
    }
    Ok(())
}

fn lock_release(
    catalog: &Catalog,
    name: &str,
    facts: &Resolved,
    uv: &Uv,
    update: &Update,
) -> Result<LockedRelease> {
    let (root, _) = catalog.root_of(catalog.release(name)?);
    if facts.channel == Channel::Index {
        // The host's index would give another CUDA build under the same version.
        return refuse(
            Id::NoWheelChannel,
            catalog.place(&["releases", name, "cuda"]),
            format!("only the PyTorch index has {} of torch {}", facts.cuda_build, facts.torch),
            "choose the build that PyPI serves; indexes of one's own are not built yet",
        );
    }
    let mut locked = LockedRelease {
        root: root.to_owned(),
        facts: facts.clone(),
        wheels: BTreeMap::new(),
        variants: BTreeMap::new(),
    };
    for platform in catalog.platforms(catalog.release(name)?) {
        (update.progress)(&format!("resolving release {name} for {platform}"));
        let wanted = requirements(facts, &catalog.base.requirements);
        let base = wheels::parse(&uv.resolve(&wanted, &[], &facts.python, *platform)?)?;
        let mut added = BTreeMap::new();
        for variant in catalog.variants.keys() {
            add(catalog, facts, variant, &base, &mut added, |wanted, below| {
                wheels::parse(&uv.resolve(wanted, below, &facts.python, *platform)?)
            })?;
        }
        for (variant, added) in added.into_iter().filter(|(_, added)| !added.is_empty()) {
            locked.variants.entry(variant.to_owned()).or_default().insert(*platform, added);
        }
        locked.wheels.insert(*platform, base);
    }
    Ok(locked)
}

/// Adds to `done` the wheels that each tier of a variant adds to those below it, which stay as they are.
fn add<'a>(
    catalog: &'a Catalog,
    facts: &Resolved,
    variant: &'a str,
    base: &[Wheel],
    done: &mut BTreeMap<&'a str, Vec<Wheel>>,
    resolve: impl Fn(&str, &[Wheel]) -> Result<Vec<Wheel>>,
) -> Result<()> {
    let mut below = base.to_vec();
    for tier in tiers(catalog, facts, variant) {
        let wanted = tier.requirements();
        if !wanted.is_empty() && !done.contains_key(tier.name) {
            let mut added = resolve(&(wanted.join("\n") + "\n"), &below)?;
            // What a tier names itself it has whole, whatever a tier below has left out of it.
            let named = |wheel: &Wheel| wanted.iter().any(|it| normalised(it) == wheel.name);
            added.retain(|wheel| named(wheel) || !below.iter().any(|it| it.name == wheel.name));
            done.insert(tier.name, added);
        }
        below.extend(done.get(tier.name).into_iter().flatten().cloned());
    }
    Ok(())
}

/// The name in a requirement, as PyPA's specification of names normalises it: `nvidia-cuda-runtime` of `NVIDIA_cuda.runtime>=13`.
fn normalised(requirement: &str) -> String {
    let is_name = |c: &char| c.is_ascii_alphanumeric() || "._-".contains(*c);
    let name: String = requirement.chars().take_while(is_name).collect();
    name.to_lowercase().split(['.', '_', '-']).filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

/// What uv is asked for: the trio exactly, and the rest at its newest.
fn requirements(facts: &Resolved, others: &[String]) -> String {
    let mut lines = facts.trio();
    lines.extend(others.iter().cloned());
    lines.join("\n") + "\n"
}

fn lock_root(spec: &RootSpec, update: &Update) -> Result<LockedRoot> {
    let layout = root::provide(spec, update.state, true, update.progress)?;
    Ok(LockedRoot { digest: layout.digest, bytes: layout.bytes, packages: layout.packages })
}

/// Midnight (UTC) of today, or `SOURCE_DATE_EPOCH` where the caller sets it.
fn epoch() -> Result<u64> {
    if let Some(text) = std::env::var_os("SOURCE_DATE_EPOCH") {
        let text = text.to_string_lossy();
        return text.parse().or_else(|_| {
            refuse(
                Id::Schema,
                "SOURCE_DATE_EPOCH",
                format!("`{text}` is not a number of seconds"),
                "unset it, or set it to seconds since 1970",
            )
        });
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    Ok(now - now % DAY)
}
