//! The texts of a `.dist-info` folder: `RECORD`, `WHEEL`, `entry_points.txt`. Pure.

use anyhow::Result;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use sha2::{Digest, Sha256};

/// `RECORD`: every installed file of a package.
#[derive(Debug, Default)]
pub struct Record(Vec<Row>);

/// A file in `RECORD`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Row {
    /// Its path from where the packages are.
    pub path: String,
    /// `sha256=…`; empty for `RECORD` itself.
    pub hash: String,
    /// Its size in bytes, as it is written; empty for `RECORD` itself.
    pub size: String,
}

impl Row {
    /// The row of a file that is made here.
    pub fn of(path: &str, bytes: &[u8]) -> Row {
        let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(bytes));
        Row { path: path.to_owned(), hash: format!("sha256={hash}"), size: bytes.len().to_string() }
    }
}

impl Record {
    /// Reads one; what is no row is left out.
    pub fn parse(text: &str) -> Record {
        let mut reader =
            csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
        let row = |fields: csv::StringRecord| {
            let field = |i: usize| fields.get(i).unwrap_or_default().to_owned();
            Row { path: field(0), hash: field(1), size: field(2) }
        };
        Record(reader.records().filter_map(Result::ok).map(row).collect())
    }

    /// The row of a path.
    pub fn row(&self, path: &str) -> Option<&Row> {
        self.0.iter().find(|row| row.path == path)
    }

    /// Puts a row in the place of a path's.
    pub fn replace(&mut self, path: &str, row: Row) {
        self.0.retain(|it| it.path != path);
        self.0.push(row);
    }

    /// Adds a row, or puts it in the place of the one with its path.
    pub fn add(&mut self, row: Row) {
        let path = row.path.clone();
        self.replace(&path, row);
    }

    /// The text, sorted.
    pub fn into_text(mut self) -> Result<Vec<u8>> {
        self.0.sort_unstable();
        let mut writer = csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new());
        for row in &self.0 {
            writer.serialize(row)?;
        }
        Ok(writer.into_inner()?)
    }
}

/// The value of a field in a text of `Name: value` lines.
pub fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let of = |line: &'t str| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    };
    text.lines().find_map(of)
}

/// A function that a script calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryPoint {
    /// The script's name.
    pub name: String,
    /// The module it imports.
    pub module: String,
    /// What it calls there, with dots between its parts.
    pub function: String,
}

impl EntryPoint {
    /// Whether it names a file in a folder and words of Python.
    pub fn is_good(&self) -> bool {
        let is_path = |text: &str| {
            !text.is_empty()
                && text.split('.').all(|part| part.chars().all(|c| c == '_' || c.is_alphanumeric()))
        };
        let is_name =
            !self.name.is_empty() && !self.name.starts_with('.') && !self.name.contains(['/', '\0']);
        is_name && is_path(&self.module) && is_path(&self.function)
    }
}

/// Console and GUI scripts of an `entry_points.txt`, by name; on Linux they are one kind.
pub fn entry_points(text: &str) -> Vec<EntryPoint> {
    let mut wanted = false;
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            wanted = matches!(section.trim(), "console_scripts" | "gui_scripts");
        } else if wanted && !line.starts_with(['#', ';']) {
            found.extend(entry_point(line));
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// `name = module:function [extra]`; the extra says when it is of use, not whether it is there.
fn entry_point(line: &str) -> Option<EntryPoint> {
    let (name, target) = line.split_once('=')?;
    let target = target.split('[').next().unwrap_or_default();
    let (module, function) = target.split_once(':')?;
    let own = |text: &str| text.trim().to_owned();
    Some(EntryPoint { name: own(name), module: own(module), function: own(function) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_read_and_other_groups_are_not() {
        let text = "[console_scripts]\n# c\nb = x.y:main.run [extra]\na=x:f\n\n[other]\nc = z:f\n[gui_scripts]\nd = w:g\n";
        let found = entry_points(text);
        let shown: Vec<_> =
            found.iter().map(|p| (p.name.as_str(), p.module.as_str(), p.function.as_str())).collect();
        assert_eq!(shown, [("a", "x", "f"), ("b", "x.y", "main.run"), ("d", "w", "g")]);
        let bad = |name: &str| !EntryPoint { name: name.to_owned(), ..found[0].clone() }.is_good();
        assert!(found.iter().all(EntryPoint::is_good));
        assert!(bad("../sh") && bad("") && bad(".x"));
    }

    #[test]
    fn a_record_is_sorted_and_quoted() {
        let mut record = Record::parse("b,sha256=x,1\n\"a,b\",sha256=y,2\nd.dist-info/RECORD,,\n");
        record.add(Row::of("c", b""));
        record.replace("b", Row { path: "../b".to_owned(), hash: "h".to_owned(), size: "3".to_owned() });
        let text = String::from_utf8(record.into_text().unwrap()).unwrap();
        assert_eq!(
            text,
            "../b,h,3\n\"a,b\",sha256=y,2\nc,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\nd.dist-info/RECORD,,\n"
        );
    }

    #[test]
    fn fields_are_found_whatever_their_case() {
        assert_eq!(field("A: 1\nwheel-version: 1.0\n", "Wheel-Version"), Some("1.0"));
        assert_eq!(field("A: 1\n", "B"), None);
    }
}
