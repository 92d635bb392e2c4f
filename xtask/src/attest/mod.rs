//! What is told of an image beside it: what it holds, and what it was made from. Both are made the same way each time.

pub mod inventory;
pub mod provenance;
pub mod sbom;
