//! Which of the host's sources are the distribution's own: third parties serve the same suites.

use super::Host;
use super::archives::{Archive, Archives, Family, Source};
use super::sources::Entry;

/// Suites that are the distribution itself under another name.
const ALIASES: &[&str] = &["stable", "testing", "unstable", "sid", "oldstable"];

/// Options of the host that decide whether an archive is trusted; the others (`arch`, `lang`, …) are not taken over.
const TRUST: &[&str] = &["signed-by", "trusted", "check-valid-until", "check-date", "allow-insecure"];

/// Picks the archives out of everything the host names.
pub fn choose(family: Family, host: &Host, entries: &[Entry]) -> Option<Archives> {
    let native = host.os.id == family.as_str();
    let ours = |e: &&Entry| e.components.iter().any(|c| c == "main") && !e.uris.is_empty();
    let entries: Vec<&Entry> = entries.iter().filter(ours).collect();
    let known = |suite: &String| *suite == host.os.codename || ALIASES.contains(&suite.as_str());
    let main = best(
        entries.iter().filter(|e| {
            !e.suites.iter().any(|s| is_security(s))
                && if native { e.suites.iter().any(known) } else { is_of(family, e) }
        }),
        family,
    )?;
    let security = best(
        entries.iter().filter(|e| e.suites.iter().any(|s| is_security(s)) && (native || is_of(family, e))),
        family,
    );
    let same = |e: &&&Entry| e.uris[0] == main.uris[0];
    let updates = entries.iter().filter(same).any(|e| e.suites.iter().any(|s| s.ends_with("-updates")));
    let host = entries
        .iter()
        .filter(|e| native && (e.uris[0] == main.uris[0] || security.is_some_and(|s| s.uris[0] == e.uris[0])))
        .flat_map(|e| sources_of(family, e))
        .collect();
    Some(Archives { family, main: archive(main), security: security.map(archive), updates, host })
}

fn is_security(suite: &str) -> bool {
    suite.ends_with("-security") || suite.ends_with("/updates")
}

/// The entry that most looks like the distribution's own; the first of equals, which is the one apt prefers.
fn best<'a>(entries: impl Iterator<Item = &'a &'a Entry>, family: Family) -> Option<&'a Entry> {
    let mut best: Option<(&Entry, u8)> = None;
    for entry in entries {
        let score = likeness(family, entry);
        if best.is_none_or(|(_, top)| score > top) {
            best = Some((entry, score));
        }
    }
    best.map(|(entry, _)| entry)
}

/// How much an entry looks like the distribution's own, and not like a third party's for the same suite.
fn likeness(family: Family, entry: &Entry) -> u8 {
    let name = family.as_str();
    let keyring = entry.options.get("signed-by").is_some_and(|k| k.contains(&format!("{name}-archive")));
    let last = entry.uris[0].trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let path = last == name || last == format!("{name}-security");
    let updates = entry.suites.iter().any(|s| s.ends_with("-updates"));
    4 * u8::from(keyring) + 2 * u8::from(path) + u8::from(updates)
}

fn is_of(family: Family, entry: &Entry) -> bool {
    likeness(family, entry) >= 2
}

fn archive(entry: &Entry) -> Archive {
    let trust = |key: &&str| Some(((*key).to_owned(), entry.options.get(*key)?.replace('\n', ",")));
    Archive { uri: entry.uris[0].clone(), options: TRUST.iter().filter_map(trust).collect() }
}

fn sources_of(family: Family, entry: &Entry) -> Vec<Source> {
    let source = |suite: &String| Source {
        archive: archive(entry),
        suite: suite.clone(),
        components: family.components(),
        optional: false,
    };
    entry.suites.iter().map(source).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apt::OsRelease;
    use crate::apt::sources::{parse_deb822, parse_one_line};

    fn host(id: &str, codename: &str) -> Host {
        Host {
            os: OsRelease { id: id.into(), codename: codename.into(), name: String::new() },
            libc: "2.36-9".into(),
            arch: "amd64".into(),
        }
    }

    const STRANGERS: &str = "deb https://vendor.example.com/linux bookworm stable\n\
        deb [signed-by=/usr/share/keyrings/vendor.gpg] https://vendor.example.com/apt bookworm main\n";

    #[test]
    fn the_distribution_wins_over_third_parties_of_the_same_suite() {
        let text = format!(
            "{STRANGERS}deb http://u:p@m.example.org/debian bookworm main\n\
             deb http://u:p@m.example.org/debian bookworm-updates main\n\
             deb [arch=amd64 trusted=yes] http://s.example.org/debian-security bookworm-security main\n"
        );
        let found = choose(Family::Debian, &host("debian", "bookworm"), &parse_one_line(&text)).unwrap();
        let lines: Vec<_> = found.suite("trixie", false).iter().map(Source::line).collect();
        assert_eq!(
            lines,
            [
                "deb http://u:p@m.example.org/debian trixie main",
                "deb http://u:p@m.example.org/debian trixie-updates main",
                "deb [trusted=yes] http://s.example.org/debian-security trixie-security main",
            ]
        );
        assert_eq!(found.suite("testing", true).len(), 1);
        let own: Vec<_> = found.host.iter().map(|s| s.suite.as_str()).collect();
        assert_eq!(own, ["bookworm", "bookworm-updates", "bookworm-security"]);
    }

    #[test]
    fn a_mirror_under_any_name_will_do_where_there_is_no_other() {
        let only = parse_one_line("deb https://repo.example.org/artifacts/deb-remote bookworm main");
        let found = choose(Family::Debian, &host("debian", "bookworm"), &only).unwrap();
        assert_eq!(found.suite("trixie", false).len(), 1, "no updates, no fixes: the host has none");
        assert_eq!(choose(Family::Debian, &host("debian", "trixie"), &only), None);
        assert_eq!(choose(Family::Debian, &host("debian", "bookworm"), &[]), None);
    }

    #[test]
    fn ubuntu_has_its_own_archive_and_debian_only_where_it_is_named() {
        let text = "Types: deb\nURIs: http://a.example.org/ubuntu/\nSuites: noble noble-updates\n\
            Components: main restricted universe\nSigned-By: /usr/share/keyrings/ubuntu-archive-keyring.gpg\n\n\
            Types: deb\nURIs: http://s.example.org/ubuntu/\nSuites: noble-security\nComponents: main universe\n";
        let ubuntu = host("ubuntu", "noble");
        let mut entries = parse_deb822(text);
        let found = choose(Family::Ubuntu, &ubuntu, &entries).unwrap();
        assert_eq!(found.main.uri, "http://a.example.org/ubuntu/");
        assert_eq!(found.security.unwrap().uri, "http://s.example.org/ubuntu/");
        assert_eq!(found.host.len(), 3);
        assert!(found.host[0].line().ends_with(" noble main universe"));
        assert_eq!(choose(Family::Debian, &ubuntu, &entries), None);
        entries.extend(parse_one_line("deb http://d.example.org/debian/ trixie main"));
        let debian = choose(Family::Debian, &ubuntu, &entries).unwrap();
        assert_eq!((debian.main.uri.as_str(), debian.host.len()), ("http://d.example.org/debian/", 0));
    }
}
