//! One at a time: two runs must not fetch into, or start in, the same folder at once.

use crate::digest;
use crate::problem::{Id, refuse};
use anyhow::Result;
use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::time::{Duration, Instant};

/// A fetch over a slow line takes some minutes.
const PATIENCE: Duration = Duration::from_secs(600);

/// Keeps other runs out for as long as it lives.
///
/// It is a name in the kernel's table of sockets: whoever dies lets go of it, and no file is left behind.
pub struct Hold(#[allow(dead_code)] UnixListener);

impl Hold {
    /// Takes hold of what happens to a folder; waits for another run to end. `what` keeps apart what may happen at once.
    ///
    /// Errors: `E_LOCKED` after ten minutes.
    pub fn take(folder: &Path, what: &str, say: &dyn Fn(&str)) -> Result<Hold> {
        Hold::within(PATIENCE, folder, what, say)
    }

    fn within(patience: Duration, folder: &Path, what: &str, say: &dyn Fn(&str)) -> Result<Hold> {
        let folder = std::path::absolute(folder)?;
        let hash = digest::of_bytes(folder.as_os_str().as_encoded_bytes());
        let address = SocketAddr::from_abstract_name(format!("xtask {what} {hash}"))?;
        let start = Instant::now();
        let mut told = false;
        loop {
            match UnixListener::bind_addr(&address) {
                Ok(listener) => return Ok(Hold(listener)),
                Err(error) if error.kind() != ErrorKind::AddrInUse => return Err(error.into()),
                Err(_) if start.elapsed() >= patience => break,
                Err(_) if !told => say(&format!("waiting for another run that works on the {what}")),
                Err(_) => {}
            }
            told = true;
            std::thread::sleep(Duration::from_millis(100));
        }
        refuse(
            Id::Locked,
            folder.display().to_string(),
            format!("another run works on the {what} for more than {} s", patience.as_secs()),
            "wait for it to end or end it, then run the same command again",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_for_each_folder_and_purpose() {
        let dir = tempfile::tempdir().unwrap();
        let take = |what: &str| Hold::within(Duration::ZERO, dir.path(), what, &|_| ());
        let held = take("engine").unwrap();
        assert!(take("engine").is_err_and(|e| e.to_string().contains("E_LOCKED")));
        assert!(take("packages").is_ok());
        drop(held);
        assert!(take("engine").is_ok());
    }
}
