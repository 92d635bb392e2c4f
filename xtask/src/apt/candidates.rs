//! Versions on offer, read out of `apt-cache madison` and `apt-cache show`, and the choice among them.

use std::collections::BTreeMap;

/// A version of a package that a suite offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The package.
    pub package: String,
    /// Its version.
    pub version: String,
    /// The suite that has it.
    pub suite: String,
    /// The least version of the C library that it runs with: `2.34`; none where it does not say.
    pub libc: Option<String>,
}

/// Reads both answers. The order is that of `madison`: the highest version of each package first.
pub fn parse(madison: &str, show: &str) -> Vec<Candidate> {
    let needs = needs_libc(show);
    let candidate = |line: &str| {
        let mut columns = line.split('|').map(str::trim);
        let (package, version, place) = (columns.next()?, columns.next()?, columns.next()?);
        // `URI suite/component architecture Packages`; sources have `Sources` there.
        let (suite, _) = place.split_whitespace().nth(1)?.rsplit_once('/')?;
        place.ends_with("Packages").then(|| Candidate {
            package: package.to_owned(),
            version: version.to_owned(),
            suite: suite.to_owned(),
            libc: needs.get(&(package.to_owned(), version.to_owned())).cloned(),
        })
    };
    madison.lines().filter_map(candidate).collect()
}

/// The least C library of each package and version in stanzas of `apt-cache show`.
fn needs_libc(show: &str) -> BTreeMap<(String, String), String> {
    let mut needs = BTreeMap::new();
    for stanza in show.split("\n\n") {
        let field = |name: &str| stanza.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(": "));
        let (Some(package), Some(version)) = (field("Package"), field("Version")) else {
            continue;
        };
        let depends = ["Pre-Depends", "Depends"].iter().filter_map(|name| field(name));
        let libc = depends
            .flat_map(|d| d.split(','))
            .filter_map(least_libc)
            .max_by(|a, b| dotted(a).cmp(&dotted(b)));
        if let Some(libc) = libc {
            needs.insert((package.to_owned(), version.to_owned()), libc.to_owned());
        }
    }
    needs
}

/// `2.34` of `libc6 (>= 2.34)`.
fn least_libc(dependency: &str) -> Option<&str> {
    let (name, relation) = dependency.trim().split_once(' ')?;
    let name = name.split(':').next()?;
    let least = relation.trim().strip_prefix("(>=")?.trim().strip_suffix(')')?;
    (name == "libc6").then_some(least)
}

/// The upstream part of a version of the C library as numbers: `2.36-9+deb12u13` is [2, 36].
fn dotted(version: &str) -> Vec<u64> {
    let upstream = version.split(['-', '+', '~']).next().unwrap_or_default();
    upstream.split('.').map(|n| n.parse().unwrap_or(0)).collect()
}

/// Whether a package runs with the host's C library.
pub fn fits(candidate: &Candidate, host_libc: &str) -> bool {
    candidate.libc.as_ref().is_none_or(|least| dotted(least) <= dotted(host_libc))
}

/// The newest version that runs here, from the first group of suites that has one.
pub fn choose<'a>(
    package: &str,
    groups: &[Vec<String>],
    candidates: &'a [Candidate],
    host_libc: &str,
) -> Option<&'a Candidate> {
    groups.iter().find_map(|group| {
        candidates
            .iter()
            .filter(|c| c.package == package && group.contains(&c.suite))
            .find(|c| fits(c, host_libc))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MADISON: &str = "\
 runc | 1.3.6+ds1-1 | http://m.example.org/debian testing/main amd64 Packages
 runc | 1.1.15+ds1-2+b4 | http://m.example.org/debian trixie/main amd64 Packages
 runc | 1.1.15+ds1-2+b4 | http://m.example.org/debian trixie/main Sources
 runc | 1.1.15+ds1-1 | http://m.example.org/debian-security trixie-security/main amd64 Packages
 runc | 1.1.5+ds1-1 | http://m.example.org/debian bookworm/main amd64 Packages
";
    const SHOW: &str = "Package: runc\nVersion: 1.3.6+ds1-1\nDepends: libc6 (>= 2.41), libseccomp2 (>= 2.5.0)\n\n\
        Package: runc\nVersion: 1.1.15+ds1-2+b4\nPre-Depends: x\nDepends: libseccomp2 (>= 2.5.0), libc6 (>= 2.38)\n\n\
        Package: runc\nVersion: 1.1.15+ds1-1\nDepends: libc6:amd64 (>= 2.38)\n\n\
        Package: runc\nVersion: 1.1.5+ds1-1\nDepends: libc6 (>= 2.34)\n\n";

    fn groups(names: &[&[&str]]) -> Vec<Vec<String>> {
        names.iter().map(|g| g.iter().map(|n| (*n).to_owned()).collect()).collect()
    }

    #[test]
    fn the_first_suite_that_fits_the_c_library_is_taken() {
        let all = parse(MADISON, SHOW);
        assert_eq!(all.len(), 4, "{all:?}");
        let stable: &[&str] = &["trixie", "trixie-security"];
        let order = groups(&[stable, &["bookworm"]]);
        let version =
            |order: &[Vec<String>], libc| choose("runc", order, &all, libc).map(|c| c.version.as_str());
        assert_eq!(version(&order, "2.41-12"), Some("1.1.15+ds1-2+b4"), "the newer of a group");
        assert_eq!(version(&order, "2.36-9+deb12u13"), Some("1.1.5+ds1-1"));
        assert_eq!(version(&order, "2.31-13"), None);
        assert_eq!(version(&groups(&[&["testing"], stable]), "2.41-12"), Some("1.3.6+ds1-1"));
        assert_eq!(version(&groups(&[&["sid"]]), "2.41-12"), None);
    }

    #[test]
    fn a_package_that_names_no_c_library_always_fits() {
        let all = parse(
            "mmdebstrap | 1.5.7-1 | http://m.example.org/debian trixie/main amd64 Packages\n",
            "Package: mmdebstrap\nVersion: 1.5.7-1\nDepends: apt (>= 2.3.14), perl:any\n",
        );
        assert_eq!(all[0].libc, None);
        assert!(fits(&all[0], "2.19-18"));
    }
}
