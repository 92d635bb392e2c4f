//! What a layer holds: files by path, with everything that a tar tells of them. Pure but for a look at equal files.

use super::zip::{Archive, Entry};
use crate::problem::{Id, refuse};
use anyhow::Result;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// Files and folders by their path below `/`; folders come before what is in them.
pub type Tree<'a> = BTreeMap<PathBuf, Node<'a>>;

/// A file, folder or link.
#[derive(Clone, Debug)]
pub struct Node<'a> {
    /// Its bytes.
    pub content: Content<'a>,
    /// Its permissions.
    pub mode: u32,
    /// Seconds since 1970.
    pub time: u64,
}

/// Where the bytes of a node are.
#[derive(Clone, Debug)]
pub enum Content<'a> {
    /// In a wheel.
    Packed(&'a Archive, &'a Entry),
    /// Here.
    Made(Vec<u8>),
    /// It is a symbolic link to this.
    Link(PathBuf),
    /// It is a folder.
    Folder,
}

/// Permissions under the umask 002 that the base is installed with: group 0 may add and remove packages later.
pub const FILE: u32 = 0o664;
/// The same of programs and folders.
pub const PROGRAM: u32 = 0o775;

/// Libraries smaller than this are not worth a link.
const LINKED_FROM: u64 = 65536;

impl Node<'_> {
    /// Its size as a tar tells it.
    pub fn size(&self) -> u64 {
        match &self.content {
            Content::Packed(_, entry) => entry.size,
            Content::Made(bytes) => bytes.len() as u64,
            Content::Link(_) | Content::Folder => 0,
        }
    }
}

/// Joins the trees of wheels. Two wheels may bring the same file, but no two files at one place.
///
/// Errors: `E_WHEEL` with both wheels.
pub fn join<'a>(trees: impl IntoIterator<Item = Tree<'a>>) -> Result<Tree<'a>> {
    let mut all = Tree::new();
    for (path, node) in trees.into_iter().flatten() {
        if let Some(there) = all.get(&path) {
            if !is_same(there, &node)? {
                return refuse(
                    Id::Wheel,
                    format!("{}: {}", owner(&node), path.display()),
                    format!("{} has another file of this name", owner(there)),
                    "leave one of the two packages out: which of them would win is chance",
                );
            }
            continue;
        }
        all.insert(path, node);
    }
    Ok(all)
}

fn owner<'n>(node: &'n Node) -> &'n str {
    match &node.content {
        Content::Packed(archive, _) => &archive.name,
        _ => "another wheel",
    }
}

/// Whether two nodes hold the same bytes; those of equal size and CRC are read.
fn is_same(a: &Node, b: &Node) -> Result<bool> {
    match (&a.content, &b.content) {
        (Content::Packed(one, a), Content::Packed(two, b)) => same_bytes((one, a), (two, b)),
        (Content::Made(a), Content::Made(b)) => Ok(a == b),
        (Content::Link(a), Content::Link(b)) => Ok(a == b),
        (Content::Folder, Content::Folder) => Ok(true),
        _ => Ok(false),
    }
}

fn same_bytes((one, a): (&Archive, &Entry), (two, b): (&Archive, &Entry)) -> Result<bool> {
    if (a.size, a.crc) != (b.size, b.crc) {
        return Ok(false);
    }
    Ok(one.digest(a)? == two.digest(b)?)
}

/// Takes out what only a linker reads, and makes libraries that are byte for byte one into links to the first: wheels
/// cannot hold links, so they hold a library once for each of its names, or a copy of another wheel's, which is in
/// `others`. It is what the script `slim` of the base's Dockerfile does.
pub fn slim(tree: &mut Tree, others: &Tree) -> Result<()> {
    let is_static = |path: &Path, node: &Node| {
        path.extension().is_some_and(|it| it == "a") && !matches!(node.content, Content::Folder)
    };
    tree.retain(|path, node| !is_static(path, node));
    let mut known = Libraries::default();
    for (path, node) in others.iter().filter(|(path, node)| is_library(path, node)) {
        known.twin(path, node)?;
    }
    for (path, node) in tree.iter_mut().filter(|(path, node)| is_library(path, node)) {
        if let Some(there) = known.twin(path, node)? {
            *node = Node { content: Content::Link(relative(&there, path)), mode: 0o777, time: node.time };
        }
    }
    Ok(())
}

/// Libraries by size and CRC, each with the path that has it first.
#[derive(Default)]
struct Libraries<'a>(BTreeMap<(u64, u32), Vec<(PathBuf, Node<'a>)>>);

impl<'a> Libraries<'a> {
    /// Where the same bytes are already; otherwise they are known from now on.
    fn twin(&mut self, path: &Path, node: &Node<'a>) -> Result<Option<PathBuf>> {
        let Content::Packed(_, entry) = &node.content else { return Ok(None) };
        let alike = self.0.entry((entry.size, entry.crc)).or_default();
        for (there, other) in alike.iter() {
            if is_same(node, other)? {
                return Ok(Some(there.clone()));
            }
        }
        alike.push((path.to_owned(), node.clone()));
        Ok(None)
    }
}

fn is_library(path: &Path, node: &Node) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("lib") && name.contains(".so") && node.size() >= LINKED_FROM
}

/// A path as it is written in a link that stands at another.
fn relative(to: &Path, from: &Path) -> PathBuf {
    let folder = from.parent().unwrap_or(Path::new(""));
    let shared = to.components().zip(folder.components()).take_while(|(a, b)| a == b).count();
    let up = folder.components().skip(shared).map(|_| Component::ParentDir);
    up.chain(to.components().skip(shared)).collect()
}

/// Adds the folders that files lie in. `top`, which is in the image already, keeps what it has.
pub fn with_folders<'a>(mut tree: Tree<'a>, top: &Path) -> Tree<'a> {
    let mut newest: BTreeMap<PathBuf, u64> = BTreeMap::new();
    for (path, node) in &tree {
        for folder in path.ancestors().skip(1).take_while(|folder| *folder != top && **folder != *"") {
            let time = newest.entry(folder.to_owned()).or_default();
            *time = node.time.max(*time);
        }
    }
    for (folder, time) in newest {
        tree.entry(folder).or_insert(Node { content: Content::Folder, mode: PROGRAM, time });
    }
    tree
}
