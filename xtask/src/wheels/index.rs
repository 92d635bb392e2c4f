//! An index's page of a package, as PyPA's specification "Simple repository API" has it: JSON, or HTML. Pure.

use serde::Deserialize;
use std::collections::BTreeMap;

/// What is asked for: JSON where the index has it.
pub const ACCEPT: &str =
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1";

#[derive(Deserialize)]
struct Page {
    files: Vec<File>,
}

#[derive(Deserialize)]
struct File {
    filename: String,
    url: String,
    #[serde(default)]
    hashes: BTreeMap<String, String>,
}

/// The address of a package's page.
pub fn page(index: &str, package: &str) -> String {
    format!("{}/{package}/", index.trim_end_matches('/'))
}

/// The address of a file on the page of its package: by its hash, or by its name where the page tells none.
pub fn address(page: &str, text: &str, file: &str, sha256: &str) -> Option<String> {
    let files = match serde_json::from_str::<Page>(text) {
        Ok(page) => page.files,
        Err(_) => links(text),
    };
    let is_it = |it: &&File| match it.hashes.get("sha256") {
        Some(hash) => hash.eq_ignore_ascii_case(sha256),
        None => it.filename == file,
    };
    files.iter().find(is_it).map(|it| join(page, &it.url))
}

/// The links of an HTML page: the hash stands behind `#` in the address.
fn links(text: &str) -> Vec<File> {
    let link = |after: &str| {
        let (tag, rest) = after.split_once('>')?;
        let (_, value) = tag.split_once("href=")?;
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let address = value[1..].split(quote).next()?.replace("&amp;", "&");
        let filename = rest.split('<').next()?.trim().to_owned();
        let (url, fragment) = address.split_once('#').unwrap_or((&address, ""));
        let hashes = fragment.split_once('=').map(|(name, hash)| (name.to_owned(), hash.to_owned()));
        Some(File { filename, url: url.to_owned(), hashes: hashes.into_iter().collect() })
    };
    text.split("<a ").skip(1).filter_map(link).collect()
}

/// An address as a page means it: see RFC 3986, section 5.2.
fn join(page: &str, address: &str) -> String {
    let scheme_end = page.find("://").map_or(0, |at| at + 3);
    let host_end = page[scheme_end..].find('/').map_or(page.len(), |at| scheme_end + at);
    if address.contains("://") {
        return address.to_owned();
    }
    if let Some(rest) = address.strip_prefix("//") {
        return format!("{}{rest}", &page[..scheme_end]);
    }
    if address.starts_with('/') {
        return format!("{}{address}", &page[..host_end]);
    }
    let mut parts: Vec<&str> = page[host_end..].split('/').skip(1).collect();
    parts.pop();
    for part in address.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            part => parts.push(part),
        }
    }
    format!("{}/{}", &page[..host_end], parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "https://index.example.org/root/simple/a/";

    #[test]
    fn a_file_is_found_by_its_hash_in_both_forms() {
        let json = r#"{"meta":{"api-version":"1.0"},"files":[
            {"filename":"a-1.whl","url":"https://files.example.org/x/a-1.whl","hashes":{"sha256":"00"}},
            {"filename":"a-1.whl","url":"../../files/a-1.whl","hashes":{"sha256":"AA"}}]}"#;
        let html = r#"<html><body><a href="/files/b.whl#sha256=00">a-1.whl</a>
            <a data-requires-python="&gt;=3" href="../../files/a-1.whl?x=1&amp;y=2#sha256=aa">a-1.whl</a></body></html>"#;
        let found = |text| address(PAGE, text, "a-1.whl", "aa");
        assert_eq!(found(json).unwrap(), "https://index.example.org/root/files/a-1.whl");
        assert_eq!(found(html).unwrap(), "https://index.example.org/root/files/a-1.whl?x=1&y=2");
        assert_eq!(found("<a href='a-1.whl'>a-1.whl</a>").unwrap(), format!("{PAGE}a-1.whl"));
        assert_eq!(address(PAGE, json, "a-1.whl", "bb"), None);
    }

    #[test]
    fn addresses_are_joined_as_a_browser_would() {
        let cases = [
            ("https://o.example.org/b", "https://o.example.org/b"),
            ("//o.example.org/b", "https://o.example.org/b"),
            ("/b", "https://index.example.org/b"),
            ("b", "https://index.example.org/root/simple/a/b"),
            ("./../b", "https://index.example.org/root/simple/b"),
            ("../../../../../b", "https://index.example.org/b"),
        ];
        for (address, joined) in cases {
            assert_eq!(join(PAGE, address), joined, "{address}");
        }
    }

    #[test]
    fn a_page_has_its_address() {
        assert_eq!(page("https://index.example.org/simple", "a-b"), "https://index.example.org/simple/a-b/");
    }
}
