//! The host's apt sources as text: deb822 (`*.sources`) and one-line (`*.list`) files. See sources.list(5).

use std::collections::BTreeMap;
use std::path::Path;

/// A declaration of binary packages: where they are, and with which options they are trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Addresses, the preferred one first.
    pub uris: Vec<String>,
    /// Suites: `bookworm`, `bookworm-updates`, …
    pub suites: Vec<String>,
    /// Components: `main`, …
    pub components: Vec<String>,
    /// Options by their deb822 name in lower case: `signed-by`, `trusted`, …
    pub options: BTreeMap<String, String>,
}

/// Reads every source that apt itself would read below `etc` (normally `/etc/apt`), in apt's order.
/// Unreadable files are passed over, as apt passes over files it does not know.
pub fn read(etc: &Path) -> Vec<Entry> {
    let text = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    let mut entries = parse_one_line(&text(&etc.join("sources.list")));
    let mut files: Vec<_> = std::fs::read_dir(etc.join("sources.list.d"))
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    files.sort_unstable();
    for file in files {
        match file.extension().and_then(|e| e.to_str()) {
            Some("sources") => entries.extend(parse_deb822(&text(&file))),
            Some("list") => entries.extend(parse_one_line(&text(&file))),
            _ => {}
        }
    }
    for entry in &mut entries {
        entry.uris = entry.uris.iter().map(|uri| behind_mirror_list(uri, &text)).collect();
    }
    entries
}

/// Cloud images name a file that lists mirrors (`mirror+file:/etc/apt/mirrors/…`): its first line is the address.
fn behind_mirror_list(uri: &str, text: &dyn Fn(&Path) -> String) -> String {
    let Some(path) = uri.strip_prefix("mirror+file:") else {
        return uri.to_owned();
    };
    let path = Path::new(path.strip_prefix("//").unwrap_or(path));
    let list = text(path);
    let first = list.lines().map(str::trim).find(|l| !l.is_empty() && !l.starts_with('#'));
    let address = first.and_then(|line| line.split_whitespace().next());
    address.unwrap_or(uri).to_owned()
}

/// Parses the one-line form: `deb [ option=value … ] URI suite component…`.
pub fn parse_one_line(text: &str) -> Vec<Entry> {
    text.lines().filter_map(one_line).collect()
}

fn one_line(line: &str) -> Option<Entry> {
    let line = line.split('#').next().unwrap_or_default().trim();
    let rest = line.strip_prefix("deb").filter(|r| r.starts_with([' ', '\t', '[']))?.trim();
    let (options, rest) = match rest.strip_prefix('[') {
        Some(bracket) => bracket.split_once(']')?,
        None => ("", rest),
    };
    let mut words = rest.split_whitespace().map(str::to_owned);
    let (uri, suite) = (words.next()?, words.next()?);
    let option = |word: &str| {
        let (key, value) = word.split_once('=')?;
        Some((key.to_lowercase(), value.to_owned()))
    };
    Some(Entry {
        uris: vec![uri],
        suites: vec![suite],
        components: words.collect(),
        options: options.split_whitespace().filter_map(option).collect(),
    })
}

/// Parses the deb822 form: stanzas of `Field: value`, continued by indented lines.
pub fn parse_deb822(text: &str) -> Vec<Entry> {
    let mut stanzas = vec![BTreeMap::<String, String>::new()];
    let mut field = String::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some(stanza) = stanzas.last_mut() else {
            break;
        };
        if line.trim().is_empty() {
            stanzas.push(BTreeMap::new());
        } else if line.starts_with([' ', '\t']) {
            let value = stanza.entry(field.clone()).or_default();
            value.push('\n');
            value.push_str(line.trim());
        } else if let Some((key, value)) = line.split_once(':') {
            field = key.trim().to_lowercase();
            stanza.insert(field.clone(), value.trim().to_owned());
        }
    }
    stanzas.into_iter().filter_map(stanza).collect()
}

fn stanza(mut fields: BTreeMap<String, String>) -> Option<Entry> {
    let mut words = |key: &str| -> Vec<String> {
        let value = fields.remove(key).unwrap_or_default();
        value.split_whitespace().map(str::to_owned).collect()
    };
    let (types, uris, suites) = (words("types"), words("uris"), words("suites"));
    let (components, enabled) = (words("components"), words("enabled"));
    let off = enabled.first().is_some_and(|word| word.eq_ignore_ascii_case("no"));
    if off || uris.is_empty() || !types.iter().any(|t| t == "deb") {
        return None;
    }
    Some(Entry { uris, suites, components, options: fields })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn the_one_line_form_is_read() {
        let text = "# deb http://old.example.org/debian bookworm main\n\
            deb-src http://mirror.example.org/debian bookworm main\n\
            deb [ arch=amd64 signed-by=/k.gpg ] http://mirror.example.org/debian bookworm main contrib # ours\n\
            deb\thttps://u:p@mirror.example.org/sec bookworm-security main\n\ndebris\n";
        let entries = parse_one_line(text);
        assert_eq!(entries.len(), 2, "{entries:?}");
        assert_eq!(entries[0].uris, words("http://mirror.example.org/debian"));
        assert_eq!(entries[0].components, words("main contrib"));
        assert_eq!(entries[0].options["signed-by"], "/k.gpg");
        assert_eq!(entries[1].suites, words("bookworm-security"));
    }

    #[test]
    fn the_deb822_form_is_read() {
        let text = "Types: deb deb-src\n# a comment\nURIs: http://mirror.example.org/debian\n\
            Suites: bookworm\n bookworm-updates\nComponents: main\nSigned-By: /k.gpg\n\n\
            Enabled: no\nTypes: deb\nURIs: http://x.example.org\nSuites: x\nComponents: main\n\n\n\
            Types: deb-src\nURIs: http://y.example.org\nSuites: y\nComponents: main\n\n\
            Types: deb\nURIs: http://z.example.org\nSuites: z\nComponents: main\nSigned-By:\n -----BEGIN\n .\n abc\n";
        let entries = parse_deb822(text);
        assert_eq!(entries.len(), 2, "{entries:?}");
        assert_eq!(entries[0].suites, words("bookworm bookworm-updates"));
        assert_eq!(entries[0].options["signed-by"], "/k.gpg");
        assert_eq!(entries[1].options["signed-by"], "\n-----BEGIN\n.\nabc");
    }

    #[test]
    fn files_are_read_in_order_and_mirror_lists_followed() {
        let dir = tempfile::tempdir().unwrap();
        let etc = dir.path();
        std::fs::create_dir(etc.join("sources.list.d")).unwrap();
        std::fs::write(etc.join("mirrors"), "# best\nhttps://m.example.org/debian\tpriority:1\n").unwrap();
        let put = |name: &str, text: &str| {
            std::fs::write(etc.join("sources.list.d").join(name), text).unwrap();
        };
        put("b.list", "deb http://b.example.org b main");
        put("a.sources", &format!("Types: deb\nURIs: mirror+file://{}/mirrors\nSuites: a\n", etc.display()));
        put("c.list.off", "deb http://c.example.org c main");
        let entries = read(etc);
        let uris: Vec<_> = entries.iter().map(|e| e.uris[0].as_str()).collect();
        assert_eq!(uris, ["https://m.example.org/debian", "http://b.example.org"]);
        assert!(read(Path::new("/nonexistent")).is_empty());
    }
}
