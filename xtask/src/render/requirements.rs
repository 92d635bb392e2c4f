//! Wheels as requirements with the hash of every file that may be installed.

use crate::catalog::Platform;
use crate::lock::Wheel;
use std::collections::{BTreeMap, BTreeSet};

/// The wheels of every platform of a release.
pub type ByPlatform = BTreeMap<Platform, Vec<Wheel>>;

/// Requirements of the wheels that `wanted` names. What one platform needs and another does not has a marker, so one
/// file serves all platforms.
pub fn requirements(wheels: &ByPlatform, wanted: impl Fn(&Wheel) -> bool) -> String {
    let mut packages: BTreeMap<(&str, &str), Files> = BTreeMap::new();
    let all = wheels.iter().flat_map(|(platform, wheels)| wheels.iter().map(move |wheel| (platform, wheel)));
    for (platform, wheel) in all.filter(|(_, wheel)| wanted(wheel)) {
        let files = packages.entry((&wheel.name, &wheel.version)).or_default();
        files.machines.insert(platform.machine());
        files.hashes.insert(&wheel.sha256);
    }
    let line = |((name, version), files): ((&str, &str), Files)| {
        let machine = |machine: &&str| format!("platform_machine == '{machine}'");
        let machines: Vec<String> = files.machines.iter().map(machine).collect();
        let marker = match machines.len() == wheels.len() {
            true => String::new(),
            false => format!(" ; {}", machines.join(" or ")),
        };
        let hashes: String =
            files.hashes.iter().map(|hash| format!(" \\\n    --hash=sha256:{hash}")).collect();
        format!("{name}=={version}{marker}{hashes}\n")
    };
    packages.into_iter().map(line).collect()
}

/// The files of one version of a package.
#[derive(Default)]
struct Files<'a> {
    machines: BTreeSet<&'a str>,
    hashes: BTreeSet<&'a str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wheel(name: &str, version: &str, sha256: &str) -> Wheel {
        let (name, version, sha256) = (name.to_owned(), version.to_owned(), sha256.to_owned());
        Wheel { name, version, file: String::new(), bytes: 1, sha256 }
    }

    #[test]
    fn a_platform_has_its_own_lines_only_where_it_differs() {
        let wheels = ByPlatform::from([
            (
                Platform::Amd64,
                vec![wheel("a", "1", "xa"), wheel("any", "1", "same"), wheel("only", "2", "x")],
            ),
            (Platform::Arm64, vec![wheel("a", "1", "aa"), wheel("any", "1", "same")]),
        ]);
        let expected = "a==1 \\\n    --hash=sha256:aa \\\n    --hash=sha256:xa\n\
            any==1 \\\n    --hash=sha256:same\n\
            only==2 ; platform_machine == 'x86_64' \\\n    --hash=sha256:x\n";
        assert_eq!(requirements(&wheels, |_| true), expected);
        assert_eq!(requirements(&wheels, |wheel| wheel.name == "b"), "");
    }
}
