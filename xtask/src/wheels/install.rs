//! Where the files of a wheel go, and the files that an installer adds. See PyPA's specifications "Binary distribution
//! format", "Entry points" and "Recording installed projects"; where they leave a choice, it is uv's.

use super::metadata::{self, EntryPoint, Record, Row};
use super::tree::{Content, FILE, Node, PROGRAM, Tree};
use super::zip::{Archive, Entry};
use crate::problem::{Id, refuse};
use anyhow::Result;
use std::path::PathBuf;

/// The environment that wheels are installed into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Venv {
    /// Its folder, absolute.
    pub folder: PathBuf,
    /// The interpreter's major and minor version.
    pub python: String,
}

impl Venv {
    /// The folder as it stands in a layer.
    fn inside(&self) -> PathBuf {
        self.folder.strip_prefix("/").unwrap_or(&self.folder).to_owned()
    }

    /// Where packages are, below the environment's folder.
    fn packages(&self) -> String {
        format!("lib/python{}/site-packages", self.python)
    }

    /// Where the packages are in a layer.
    pub fn site_packages(&self) -> PathBuf {
        self.inside().join(self.packages())
    }

    /// The first line of a script.
    fn shebang(&self) -> String {
        format!("#!{}/bin/python", self.folder.display())
    }
}

/// A wheel under installation.
struct Wheel<'a> {
    archive: &'a Archive,
    /// `<name>-<version>`, as the wheel writes it.
    stem: String,
    /// Of the newest file in it: what is made here is as old.
    time: u64,
}

/// Every file that a wheel brings to an environment.
///
/// Errors: `E_WHEEL` where the wheel is not what the specification says.
pub fn install<'a>(archive: &'a Archive, venv: &Venv) -> Result<Tree<'a>> {
    let wheel = Wheel {
        archive,
        stem: stem(archive)?,
        time: archive.entries.iter().map(|entry| entry.modified).max().unwrap_or_default(),
    };
    wheel.check_version()?;
    let mut record = Record::parse(&wheel.text("RECORD")?);
    let mut tree = Tree::new();
    for entry in &archive.entries {
        let Some((place, content)) = wheel.place(entry, venv)? else { continue };
        // A file that moved, or changed on the way, has another row.
        let at = relative_to_packages(&place, venv);
        let row = match &content {
            Content::Made(bytes) => Some(Row::of(&at, bytes)),
            _ if at != entry.name => record.row(&entry.name).map(|row| Row { path: at, ..row.clone() }),
            _ => None,
        };
        if let Some(row) = row {
            record.replace(&entry.name, row);
        }
        let is_script = place.starts_with("bin/");
        let mode = if entry.is_executable || is_script { PROGRAM } else { FILE };
        tree.insert(venv.inside().join(place), Node { content, mode, time: entry.modified });
    }
    for point in wheel.entry_points(venv)? {
        let place = format!("bin/{}", point.name);
        let text = script(&point, venv).into_bytes();
        record.add(Row::of(&relative_to_packages(&place, venv), &text));
        tree.insert(venv.inside().join(place), wheel.made(text, PROGRAM));
    }
    for (name, text) in [("INSTALLER", "uv"), ("REQUESTED", "")] {
        record.add(Row::of(&wheel.info(name), text.as_bytes()));
        tree.insert(venv.site_packages().join(wheel.info(name)), wheel.made(text.into(), FILE));
    }
    let text = record.into_text()?;
    tree.insert(venv.site_packages().join(wheel.info("RECORD")), wheel.made(text, FILE));
    Ok(tree)
}

/// The name and version of the one `.dist-info` folder.
fn stem(archive: &Archive) -> Result<String> {
    let folder = |entry: &Entry| Some(entry.name.split_once('/')?.0.strip_suffix(".dist-info")?.to_owned());
    let mut found: Vec<String> = archive.entries.iter().filter_map(folder).collect();
    found.sort_unstable();
    found.dedup();
    match <[String; 1]>::try_from(found) {
        Ok([stem]) => Ok(stem),
        Err(found) => wrong(archive, format!("it has {} `.dist-info` folders", found.len())),
    }
}

fn wrong<T>(archive: &Archive, what: impl Into<String>) -> Result<T> {
    refuse(Id::Wheel, &archive.name, what, "take another version of the package, or leave it out")
}

/// A path below the environment as `RECORD` tells it: from where the packages are.
fn relative_to_packages(place: &str, venv: &Venv) -> String {
    match place.strip_prefix(&format!("{}/", venv.packages())) {
        Some(inside) => inside.to_owned(),
        None => format!("../../../{place}"),
    }
}

impl<'a> Wheel<'a> {
    /// A file of the `.dist-info` folder.
    fn info(&self, name: &str) -> String {
        format!("{}.dist-info/{name}", self.stem)
    }

    fn find(&self, name: &str) -> Option<&'a Entry> {
        let path = self.info(name);
        self.archive.entries.iter().find(|entry| entry.name == path)
    }

    /// A text of the `.dist-info` folder that must be there.
    fn text(&self, name: &str) -> Result<String> {
        match self.find(name) {
            Some(entry) => Ok(String::from_utf8_lossy(&self.archive.read(entry)?).into_owned()),
            None => wrong(self.archive, format!("it has no {}", self.info(name))),
        }
    }

    /// An installer may not take a wheel of another major version.
    fn check_version(&self) -> Result<()> {
        let text = self.text("WHEEL")?;
        match metadata::field(&text, "Wheel-Version") {
            Some(version) if version.split('.').next() == Some("1") => Ok(()),
            version => {
                wrong(self.archive, format!("it is of wheel version {}", version.unwrap_or("unknown")))
            }
        }
    }

    fn made(&self, bytes: Vec<u8>, mode: u32) -> Node<'a> {
        Node { content: Content::Made(bytes), mode, time: self.time }
    }

    /// Where an entry goes, below the environment's folder, and with which bytes; nowhere if the installer writes its own.
    fn place(&self, entry: &'a Entry, venv: &Venv) -> Result<Option<(String, Content<'a>)>> {
        let as_it_is = Content::Packed(self.archive, entry);
        let data = format!("{}.data/", self.stem);
        let Some(below) = entry.name.strip_prefix(&data) else {
            let is_ours = ["RECORD", "INSTALLER", "REQUESTED"].iter().any(|it| entry.name == self.info(it));
            let place = format!("{}/{}", venv.packages(), entry.name);
            return Ok((!is_ours).then_some((place, as_it_is)));
        };
        let Some((scheme, rest)) = below.split_once('/') else {
            return Err(self.archive.fault(entry, "it lies in no scheme of `.data`"));
        };
        let name = self.stem.split('-').next().unwrap_or_default();
        let place = match scheme {
            "purelib" | "platlib" => format!("{}/{rest}", venv.packages()),
            "scripts" => format!("bin/{rest}"),
            "headers" => format!("include/site/python{}/{name}/{rest}", venv.python),
            "data" => rest.to_owned(),
            _ => return Err(self.archive.fault(entry, "no installer knows this scheme of `.data`")),
        };
        let content = match scheme {
            "scripts" => self.with_shebang(entry, venv)?.map_or(as_it_is, Content::Made),
            _ => as_it_is,
        };
        Ok(Some((place, content)))
    }

    /// A script that begins with `#!python` begins with the environment's interpreter.
    fn with_shebang(&self, entry: &Entry, venv: &Venv) -> Result<Option<Vec<u8>>> {
        const PLACEHOLDER: &[u8] = b"#!python";
        if !self.archive.starts_with(entry, PLACEHOLDER)? {
            return Ok(None);
        }
        let text = self.archive.read(entry)?;
        let rest = text[PLACEHOLDER.len()..].strip_prefix(b"w").unwrap_or(&text[PLACEHOLDER.len()..]);
        Ok(Some([venv.shebang().as_bytes(), rest].concat()))
    }

    /// The scripts that the wheel asks for. pip's own are named after the interpreter that has it.
    fn entry_points(&self, venv: &Venv) -> Result<Vec<EntryPoint>> {
        let Some(entry) = self.find("entry_points.txt") else { return Ok(Vec::new()) };
        let text = String::from_utf8_lossy(&self.archive.read(entry)?).into_owned();
        let mut points = metadata::entry_points(&text);
        if let Some(bad) = points.iter().find(|point| !point.is_good()) {
            return Err(self.archive.fault(entry, &format!("`{}` is no name for a script", bad.name)));
        }
        if self.stem.starts_with("pip-") {
            points.retain(|point| !point.name.starts_with("pip3."));
            let own = points.iter().find(|point| point.name == "pip").cloned();
            points.extend(own.map(|own| EntryPoint { name: format!("pip{}", venv.python), ..own }));
        }
        Ok(points)
    }
}

/// The script of an entry point, to the byte as uv writes it.
fn script(point: &EntryPoint, venv: &Venv) -> String {
    let EntryPoint { module, function, .. } = point;
    let import = function.split('.').next().unwrap_or_default();
    format!(
        "{}\n# -*- coding: utf-8 -*-\nimport sys\nfrom {module} import {import}\nif __name__ == \"__main__\":\n    \
         if sys.argv[0].endswith(\"-script.pyw\"):\n        sys.argv[0] = sys.argv[0][:-11]\n    \
         elif sys.argv[0].endswith(\".exe\"):\n        sys.argv[0] = sys.argv[0][:-4]\n    sys.exit({function}())\n",
        venv.shebang()
    )
}
