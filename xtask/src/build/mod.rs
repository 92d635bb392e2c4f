//! From a plan to tagged images: bake, smoke, then names.

mod arriving;
mod bake;
mod bases;
mod cache;
pub mod disk;
mod fetching;
mod host;
mod images;
mod interpreter;
pub mod measured;
mod outcome;
mod progress;
pub mod registry;
mod report;
mod roots;
mod secrets;
pub mod shared;
pub mod size;
mod sources;
mod times;
mod transfer;

pub use bake::{Bake, candidate};
pub use bases::{BaseImage, BaseLayout, Bases, Maker};
pub use cache::Cache;
pub use host::{commit_day, revision};
pub use images::{Images, Tagged, truth};
pub use measured::Measured;
pub use outcome::{Outcome, judge, table};
pub use progress::Phases;
pub use report::Report;
pub use roots::Roots;
pub use secrets::{Secrets, indexes_or_default};
pub use sources::apt_secrets;
pub use times::Times;
pub use transfer::Transfer;
