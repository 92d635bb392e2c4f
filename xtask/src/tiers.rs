//! What an image adds to the base of its release, tier by tier: packages, wheels, the toolkit. Pure.

use crate::catalog::{Catalog, Toolkit, Tools, Variant};
use crate::problem::{Id, Problem};
use crate::resolve::Resolved;
use serde::Serialize;
use std::collections::BTreeMap;

/// One tier of an image above its base.
#[derive(Clone, Debug)]
pub struct Tier<'a> {
    /// The variant's name.
    pub name: &'a str,
    /// What the catalog says of it.
    pub variant: &'a Variant,
    /// nvcc and headers, where it is the tier that brings them.
    pub toolkit: Option<&'a Toolkit>,
    /// Debuggers and profilers of its CUDA, where it is the tier that brings them.
    pub tools: Option<&'a Tools>,
    /// The layer of distribution packages, where it adds any.
    pub packages: Option<PackageLayer>,
    /// What its toolkit only unpacks, which lies beside the image.
    pub unpacked: Option<PackageLayer>,
}

/// Packages of the root's distribution that are added to what is below.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PackageLayer {
    /// Its name: the variant's, with the CUDA build behind it where that decides what is in it.
    pub name: String,
    /// The packages that are installed.
    pub packages: Vec<String>,
    /// The packages that are only unpacked.
    pub unpack: Vec<String>,
    /// Components of the distribution that are needed beside `main`.
    pub components: Vec<String>,
}

/// Layers of packages by name, each with all that is below it, the lowest first.
pub type Stacks = BTreeMap<String, Vec<PackageLayer>>;

impl<'a> Tier<'a> {
    /// Python packages that it adds.
    pub fn requirements(&self) -> Vec<&'a str> {
        let toolkit = self.toolkit.into_iter().flat_map(|toolkit| &toolkit.requirements);
        let tools = self.tools.into_iter().flat_map(|tools| &tools.requirements);
        toolkit.chain(tools).chain(&self.variant.requirements).map(String::as_str).collect()
    }

    /// Programs that it brings and that must start, and with which argument.
    pub fn programs(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let tools = self.tools.into_iter().flat_map(|tools| &tools.programs);
        self.variant.programs.iter().chain(tools).map(|(name, argument)| (name.as_str(), argument.as_str()))
    }
}

/// The tiers of one variant of a release, the lowest first.
pub fn tiers<'a>(catalog: &'a Catalog, facts: &Resolved, variant: &'a str) -> Vec<Tier<'a>> {
    let of_build = catalog.toolkits.get(&facts.cuda_build);
    let mut below = Below::default();
    let tier = |(name, variant): (&'a str, &'a Variant)| {
        // What stands on a tier that has them has them already.
        let toolkit = of_build.filter(|_| variant.toolkit && !std::mem::replace(&mut below.toolkit, true));
        let tools = of_build.filter(|_| variant.cuda_tools && !std::mem::replace(&mut below.tools, true));
        let components =
            |toolkit: Option<&Toolkit>| toolkit.map(|it| it.components.clone()).unwrap_or_default();
        let unpacked = toolkit.filter(|toolkit| !toolkit.unpack.is_empty()).map(|it| PackageLayer {
            name: format!("toolkit-{}", facts.cuda_build),
            unpack: it.unpack.clone(),
            components: it.components.clone(),
            ..PackageLayer::default()
        });
        let of_cuda = [toolkit.map(|it| &it.packages), tools.map(|it| &it.tools.packages)];
        let of_cuda: Vec<String> = of_cuda.into_iter().flatten().flatten().cloned().collect();
        below.of_build |= !of_cuda.is_empty();
        let layer = PackageLayer {
            name: if below.of_build { format!("{name}-{}", facts.cuda_build) } else { name.to_owned() },
            components: components(of_build.filter(|_| !of_cuda.is_empty())),
            packages: [of_cuda, variant.packages.clone()].concat(),
            ..PackageLayer::default()
        };
        let packages = (!layer.packages.is_empty()).then_some(layer);
        Tier { name, variant, toolkit, tools: tools.map(|it| &it.tools), packages, unpacked }
    };
    catalog.tiers(variant).into_iter().map(tier).collect()
}

/// What the tiers below one have brought.
#[derive(Default)]
struct Below {
    toolkit: bool,
    tools: bool,
    /// Packages that only releases with this CUDA build get: the layers above them are of this build alone too.
    of_build: bool,
}

/// Every layer of packages that an image is made from.
pub fn stacks(catalog: &Catalog, facts: &Resolved, variant: &str) -> Stacks {
    let (mut stacks, mut stack) = (Stacks::new(), Vec::new());
    for tier in tiers(catalog, facts, variant) {
        stacks.extend(tier.unpacked.map(|layer| (layer.name.clone(), vec![layer])));
        if let Some(layer) = tier.packages {
            stack.push(layer.clone());
            stacks.insert(layer.name, stack.clone());
        }
    }
    stacks
}

/// Every release has the toolkit that its variants ask for, of its own CUDA.
pub fn check(catalog: &Catalog, resolved: &BTreeMap<String, Resolved>) -> Vec<Problem> {
    match catalog.variants.iter().find(|(_, variant)| variant.toolkit) {
        Some((variant, _)) => {
            let judge = |(release, facts): (&String, &Resolved)| toolkit_of(catalog, variant, release, facts);
            resolved.iter().filter_map(judge).collect()
        }
        None => Vec::new(),
    }
}

/// What is wrong with the toolkit of a release.
fn toolkit_of(catalog: &Catalog, variant: &str, release: &str, facts: &Resolved) -> Option<Problem> {
    let (build, cuda) = (&facts.cuda_build, &facts.cuda);
    let problem = |path: &[&str], what, cure: String| {
        Some(Problem::new(Id::ToolkitMismatch, catalog.place(path), what, cure))
    };
    let Some(toolkit) = catalog.toolkits.get(build) else {
        let what = format!("release {release} has CUDA {cuda} ({build}), and no toolkit of it is known");
        let cure = format!("add the toolkit of CUDA {cuda} as `toolkits.{build}`, or set `toolkit: false`");
        return problem(&["variants", variant, "toolkit"], what, cure);
    };
    let (root, it) = catalog.root_of(catalog.releases.get(release)?);
    if it.image.is_some() && !toolkit.unpack.is_empty() {
        let what =
            format!("`{build}` unpacks packages of Debian, and release {release} stands on the image {root}");
        let cure = "give the release a bootstrapped root".to_owned();
        return problem(&["toolkits", build, "unpack"], what, cure);
    }
    let image = toolkit.image.as_ref()?;
    let version = image.rsplit(':').next()?.split('-').next()?;
    if version == cuda || version.starts_with(&format!("{cuda}.")) {
        return None;
    }
    let what = format!(
        "`{image}` has the nvcc of CUDA {version}, the wheels of release {release} are built with {cuda}"
    );
    problem(&["toolkits", build, "image"], what, format!("take an image whose tag begins with {cuda}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compat::Compat;
    use crate::resolve::resolve;

    fn project(edit: impl Fn(String) -> String) -> (Catalog, BTreeMap<String, Resolved>) {
        let text = edit(include_str!("../../variants.yaml").to_owned());
        let catalog = Catalog::parse("v.yaml", &text).unwrap();
        let resolved = resolve(&catalog, Compat::bundled().unwrap(), false).unwrap();
        (catalog, resolved)
    }

    #[test]
    fn layers_that_only_one_cuda_has_carry_its_name() {
        let (catalog, resolved) = project(|text| text);
        let cases = [
            ("2.15", "runtime", vec![]),
            ("2.15", "mlflow", vec![]),
            ("2.15", "debug", vec!["debug", "devel"]),
            ("2.9", "debug", vec!["debug", "devel"]),
            ("2.6", "devel", vec!["devel-cu124", "toolkit-cu124"]),
            ("2.6", "debug", vec!["debug-cu124", "devel-cu124", "toolkit-cu124"]),
        ];
        for (release, variant, expected) in cases {
            let stacks = stacks(&catalog, &resolved[release], variant);
            assert_eq!(stacks.keys().collect::<Vec<_>>(), expected, "{release} {variant}");
        }
        let stacks = stacks(&catalog, &resolved["2.6"], "debug");
        let names = |stack: &[PackageLayer]| stack.iter().map(|layer| layer.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&stacks["debug-cu124"]), ["devel-cu124", "debug-cu124"]);
        assert_eq!(names(&stacks["toolkit-cu124"]), ["toolkit-cu124"]);
    }

    #[test]
    fn the_toolkit_comes_with_the_tier_that_asks_for_it_and_only_once() {
        let (catalog, resolved) = project(|text| text);
        let tiers = tiers(&catalog, &resolved["2.15"], "debug");
        let shown: Vec<_> =
            tiers.iter().map(|it| (it.name, it.toolkit.is_some(), it.tools.is_some())).collect();
        assert_eq!(shown, [("devel", true, false), ("debug", false, true)]);
        assert!(tiers[1].programs().any(|(name, _)| name == "compute-sanitizer"));
    }

    #[test]
    fn a_toolkit_of_another_cuda_is_refused() {
        let cases: [(&str, &str, &str); 3] = [
            ("  cu132: # NVIDIA", "  cu131: # NVIDIA", "no toolkit of it is known"),
            ("nvidia/cuda:12.8.1-devel", "nvidia/cuda:12.6.3-devel", "has the nvcc of CUDA 12.6.3"),
            ("    cuda: cu124\n", "    cuda: cu124\n    root: debian-slim\n", "unpacks packages of Debian"),
        ];
        for (from, to, said) in cases {
            let (catalog, resolved) = project(|text| {
                assert!(text.contains(from), "{from}");
                text.replacen(from, to, 1)
            });
            let problems = check(&catalog, &resolved);
            assert!(!problems.is_empty() && problems[0].to_string().contains(said), "{said}: {problems:?}");
            assert_eq!(problems[0].id, Id::ToolkitMismatch);
        }
    }
}
