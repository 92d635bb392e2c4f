//! From candidates in a registry to the names that users pull: found, proved, named, looked at again.

pub mod candidate;
pub mod contents;
pub mod promote;
mod proved;
pub mod prune;
pub mod report;
pub mod shown;
pub mod sign;
pub mod state;

pub use candidate::Candidate;
pub use proved::{Demand, Image, Proved};
pub use report::Report;
