//! What a tar has before the bytes of a file: no owner, no time but the file's own.

use super::tree::{Content, Node};
use anyhow::{Context, Result};
use std::path::Path;
use tar::{EntryType, Header};

/// Bytes of a block: a tar is made of them.
pub const BLOCK: usize = 512;

/// The blocks that stand before the bytes of a node.
pub fn headers(path: &Path, node: &Node) -> Result<Vec<[u8; BLOCK]>> {
    let mut header = Header::new_ustar();
    let mut blocks = Vec::new();
    let is_folder = matches!(node.content, Content::Folder);
    let name = if is_folder { path.join("") } else { path.to_owned() };
    if header.set_path(&name).is_err() {
        blocks.extend(long_path(&name)?);
    }
    if let Content::Link(to) = &node.content {
        header.set_link_name(to).with_context(|| format!("a link at {}", path.display()))?;
    }
    header.set_entry_type(match &node.content {
        Content::Link(_) => EntryType::Symlink,
        Content::Folder => EntryType::Directory,
        Content::Made(_) | Content::Packed(..) => EntryType::Regular,
    });
    header.set_size(node.size());
    finish(&mut header, node.mode, node.time);
    blocks.push(*header.as_bytes());
    Ok(blocks)
}

fn finish(header: &mut Header, mode: u32, time: u64) {
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(time);
    header.set_cksum();
}

/// What POSIX's pax format puts before a file whose path does not fit: a record `LENGTH path=VALUE`, which counts itself.
fn long_path(name: &Path) -> Result<Vec<[u8; BLOCK]>> {
    let value = format!(" path={}\n", name.display());
    let mut length = value.len() + 1;
    while length != value.len() + length.to_string().len() {
        length = value.len() + length.to_string().len();
    }
    let record = format!("{length}{value}");
    let mut header = Header::new_ustar();
    header.set_path("pax")?;
    header.set_entry_type(EntryType::XHeader);
    header.set_size(record.len() as u64);
    finish(&mut header, super::tree::FILE, 0);
    let mut blocks = vec![*header.as_bytes()];
    for part in record.as_bytes().chunks(BLOCK) {
        let mut block = [0; BLOCK];
        block[..part.len()].copy_from_slice(part);
        blocks.push(block);
    }
    Ok(blocks)
}
