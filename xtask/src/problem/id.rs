//! The ids of refusals, and the exit code that goes with each.

use std::fmt;

/// The stable names of refusals. They are listed in the README and never change their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // The ids are the documentation; the README tells each in a sentence.
pub enum Id {
    Usage,
    Schema,
    VersionNotText,
    UnknownName,
    NoWheelChannel,
    Platform,
    TrioMismatch,
    Python,
    Network,
    Tls,
    WheelHash,
    Wheel,
    LayerDiffers,
    LockStale,
    RenderStale,
    Lint,
    BaseUnpinned,
    SecretInArg,
    RootMoved,
    BaseGone,
    RateLimit,
    RegistryAuth,
    ToolkitMismatch,
    SizeBudget,
    Name,
    Tag,
    TagCollision,
    Engine,
    Host,
    Tool,
    Disk,
    Build,
    Smoke,
    NotGpuTested,
    NoRevision,
    Digest,
    Signature,
    StaleTag,
    GpuNotAttached,
    ImageDiffers,
    NoImage,
    NameTaken,
    PortTaken,
    Path,
    WorkdirNotWritable,
    Container,
    Locked,
    Check,
    Internal,
}

/// How the process ends, by the command contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// 1: a check ran and failed.
    Failed = 1,
    /// 2: the input is refused; nothing was started.
    Refused = 2,
    /// 3: the host, an index or a registry cannot be used.
    Unusable = 3,
}

impl Id {
    /// Every id, in the order in which the README lists them.
    #[cfg(test)]
    pub const ALL: &[Id] = &[
        Id::Usage,
        Id::Schema,
        Id::VersionNotText,
        Id::UnknownName,
        Id::NoWheelChannel,
        Id::Platform,
        Id::TrioMismatch,
        Id::Python,
        Id::ToolkitMismatch,
        Id::BaseUnpinned,
        Id::Name,
        Id::Tag,
        Id::TagCollision,
        Id::SecretInArg,
        Id::Lint,
        Id::NoImage,
        Id::NameTaken,
        Id::PortTaken,
        Id::Path,
        Id::WorkdirNotWritable,
        Id::NoRevision,
        Id::Wheel,
        Id::LockStale,
        Id::RenderStale,
        Id::RootMoved,
        Id::LayerDiffers,
        Id::Check,
        Id::Build,
        Id::ImageDiffers,
        Id::Container,
        Id::Smoke,
        Id::NotGpuTested,
        Id::StaleTag,
        Id::Signature,
        Id::SizeBudget,
        Id::Internal,
        Id::GpuNotAttached,
        Id::Digest,
        Id::WheelHash,
        Id::BaseGone,
        Id::RateLimit,
        Id::RegistryAuth,
        Id::Network,
        Id::Tls,
        Id::Engine,
        Id::Host,
        Id::Tool,
        Id::Disk,
        Id::Locked,
    ];

    /// The id as it is printed and documented, e.g. `E_LOCK_STALE`.
    pub fn as_str(self) -> &'static str {
        match self {
            Id::Usage => "E_USAGE",
            Id::Schema => "E_SCHEMA",
            Id::VersionNotText => "E_VERSION_NOT_TEXT",
            Id::UnknownName => "E_UNKNOWN_NAME",
            Id::NoWheelChannel => "E_NO_WHEEL_CHANNEL",
            Id::Platform => "E_PLATFORM",
            Id::TrioMismatch => "E_TRIO_MISMATCH",
            Id::Python => "E_PYTHON",
            Id::Network => "E_NETWORK",
            Id::Tls => "E_TLS",
            Id::WheelHash => "E_WHEEL_HASH",
            Id::Wheel => "E_WHEEL",
            Id::LayerDiffers => "E_LAYER_DIFFERS",
            Id::LockStale => "E_LOCK_STALE",
            Id::RenderStale => "E_RENDER_STALE",
            Id::Lint => "E_LINT",
            Id::BaseUnpinned => "E_BASE_UNPINNED",
            Id::SecretInArg => "E_SECRET_IN_ARG",
            Id::RootMoved => "E_ROOT_MOVED",
            Id::BaseGone => "E_BASE_GONE",
            Id::RateLimit => "E_RATE_LIMIT",
            Id::RegistryAuth => "E_REGISTRY_AUTH",
            Id::ToolkitMismatch => "E_TOOLKIT_MISMATCH",
            Id::SizeBudget => "E_SIZE_BUDGET",
            Id::Name => "E_NAME",
            Id::Tag => "E_TAG",
            Id::TagCollision => "E_TAG_COLLISION",
            Id::Engine => "E_ENGINE",
            Id::Host => "E_HOST",
            Id::Tool => "E_TOOL",
            Id::Disk => "E_DISK",
            Id::Build => "E_BUILD",
            Id::Smoke => "E_SMOKE",
            Id::NotGpuTested => "E_NOT_GPU_TESTED",
            Id::NoRevision => "E_NO_REVISION",
            Id::Digest => "E_DIGEST",
            Id::Signature => "E_SIGNATURE",
            Id::StaleTag => "E_STALE_TAG",
            Id::GpuNotAttached => "E_GPU_NOT_ATTACHED",
            Id::ImageDiffers => "E_IMAGE_DIFFERS",
            Id::NoImage => "E_NO_IMAGE",
            Id::NameTaken => "E_NAME_TAKEN",
            Id::PortTaken => "E_PORT_TAKEN",
            Id::Path => "E_PATH",
            Id::WorkdirNotWritable => "E_WORKDIR_NOT_WRITABLE",
            Id::Container => "E_CONTAINER",
            Id::Locked => "E_LOCKED",
            Id::Check => "E_CHECK",
            Id::Internal => "E_INTERNAL",
        }
    }

    /// The exit code that a refusal with this id ends with.
    pub fn exit(self) -> Exit {
        match self {
            Id::LockStale
            | Id::RenderStale
            | Id::RootMoved
            | Id::LayerDiffers
            | Id::Check
            | Id::Build
            | Id::ImageDiffers
            | Id::Container
            | Id::Smoke
            | Id::SizeBudget
            | Id::StaleTag
            | Id::Signature
            | Id::Internal
            | Id::NotGpuTested => Exit::Failed,
            Id::WheelHash
            | Id::Digest
            | Id::BaseGone
            | Id::RateLimit
            | Id::RegistryAuth
            | Id::Network
            | Id::Tls
            | Id::Engine
            | Id::Host
            | Id::Tool
            | Id::Disk
            | Id::GpuNotAttached
            | Id::Locked => Exit::Unusable,
            _ => Exit::Refused,
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_is_listed_once_and_has_its_own_name() {
        let mut names: Vec<_> = Id::ALL.iter().map(|id| id.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Id::ALL.len());
        assert!(names.iter().all(|n| n.starts_with("E_")));
    }

    #[test]
    fn the_readme_lists_every_id() {
        let readme = include_str!("../../../README.md");
        for id in Id::ALL {
            assert!(readme.contains(&format!("`{id}`")), "{id}");
        }
    }
}
