//! Wheels as they come: who fetches tells, and who makes layers waits for no more than a layer needs. The first failure of
//! either side ends both.

use super::base::{Files, Group};
use crate::lock::Wheel;
use anyhow::{Error, Result};
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// What came, and the groups of wheels that wait for it.
#[derive(Default)]
pub struct Arrivals<'g> {
    state: Mutex<State<'g>>,
    changed: Condvar,
}

#[derive(Default)]
struct State<'g> {
    files: Files,
    /// The biggest last.
    waiting: Vec<&'g Group>,
    is_over: bool,
    error: Option<Error>,
}

impl<'g> Arrivals<'g> {
    /// Nothing came yet, and these wait.
    pub fn of(groups: &[&'g Group]) -> Arrivals<'g> {
        let mut waiting = groups.to_vec();
        waiting.sort_by_key(|group| group.wheels.iter().map(|wheel| wheel.bytes).sum::<u64>());
        Arrivals { state: Mutex::new(State { waiting, ..State::default() }), ..Arrivals::default() }
    }

    /// A wheel came, and is proved.
    pub fn came(&self, wheel: &Wheel, path: PathBuf) {
        self.change(|state| {
            state.files.insert(wheel.sha256.clone(), path);
        });
    }

    /// Something failed: who waits is told that there is nothing to wait for. Of several failures the first is the cause.
    pub fn fail(&self, error: Error) {
        self.change(|state| {
            state.error.get_or_insert(error);
        });
    }

    /// Whether something failed.
    pub fn has_failed(&self) -> bool {
        self.state().error.is_some()
    }

    /// How many groups wait.
    pub fn waiting(&self) -> usize {
        self.state().waiting.len()
    }

    /// Takes the biggest group of which everything is here, and what is here; waits for one. None where no group is left,
    /// or something failed.
    pub fn next(&self) -> Option<(&'g Group, Files)> {
        let mut state = self.state();
        loop {
            if state.error.is_some() || state.waiting.is_empty() {
                return None;
            }
            if let Some(at) = state.waiting.iter().rposition(|group| state.is_ready(group)) {
                return Some((state.waiting.remove(at), state.files.clone()));
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Until the end of this value, more may come.
    pub fn expected(&self) -> Expected<'_, 'g> {
        Expected(self)
    }

    /// All that came, or what failed first.
    pub fn into_files(self) -> Result<Files> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        state.error.map_or(Ok(state.files), Err)
    }

    fn change(&self, change: impl FnOnce(&mut State<'g>)) {
        change(&mut self.state());
        self.changed.notify_all();
    }

    /// Who panicked with it has left nothing half done in there.
    fn state(&self) -> MutexGuard<'_, State<'g>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State<'_> {
    /// What never comes is not waited for: whoever takes such a group tells what it lacks.
    fn is_ready(&self, group: &Group) -> bool {
        let is_here = |wheel: &Wheel| self.files.contains_key(&wheel.sha256);
        self.is_over || group.wheels.iter().chain(&group.others).all(is_here)
    }
}

/// Held by who fetches: nobody waits for one who is gone, whatever became of him.
pub struct Expected<'a, 'g>(&'a Arrivals<'g>);

impl Drop for Expected<'_, '_> {
    fn drop(&mut self) {
        self.0.change(|state| state.is_over = true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    fn wheel(name: &str, bytes: u64) -> Wheel {
        let (file, sha256) = (format!("{name}-1-py3-none-any.whl"), format!("hash of {name}"));
        Wheel { name: name.to_owned(), version: "1".to_owned(), file, bytes, sha256 }
    }

    fn group(name: &str, wheels: &[&Wheel], others: &[&Wheel]) -> Group {
        let [wheels, others] = [wheels, others].map(|list| list.iter().copied().cloned().collect());
        Group { name: name.to_owned(), wheels, others }
    }

    fn name_of(next: Option<(&Group, Files)>) -> Option<&str> {
        next.map(|(group, _)| group.name.as_str())
    }

    #[test]
    fn the_biggest_group_goes_first_of_those_that_are_whole() {
        let [a, b, c] = [wheel("a", 50), wheel("b", 60), wheel("c", 70)];
        let (big, middle) = (group("big", &[&a, &b], &[]), group("middle", &[&c], &[]));
        let (small, alone) = (group("small", &[&a], &[&c]), group("alone", &[&a], &[]));
        let arrivals = Arrivals::of(&[&small, &big, &alone, &middle]);
        let come = |wheel: &Wheel| arrivals.came(wheel, PathBuf::from(&wheel.name));
        come(&a);
        let (first, files) = arrivals.next().unwrap();
        assert_eq!((first.name.as_str(), &files[&a.sha256]), ("alone", &PathBuf::from("a")));
        come(&c);
        assert_eq!(name_of(arrivals.next()), Some("middle"));
        // Its own wheel was there before, the other's only now.
        assert_eq!(name_of(arrivals.next()), Some("small"));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| name_of(arrivals.next()));
            come(&b);
            assert_eq!(waits.join().unwrap(), Some("big"));
        });
        assert_eq!(name_of(arrivals.next()), None);
        assert_eq!(arrivals.into_files().unwrap().len(), 3);
    }

    #[test]
    fn a_failure_ends_the_waiting_and_the_first_is_told() {
        let a = wheel("a", 1);
        let needy = group("needy", &[&a], &[]);
        let arrivals = Arrivals::of(&[&needy]);
        let more = arrivals.expected();
        std::thread::scope(|scope| {
            let waits = [(); 2].map(|()| scope.spawn(|| name_of(arrivals.next())));
            arrivals.fail(anyhow!("the wire is cut"));
            arrivals.fail(anyhow!("and so was this"));
            assert!(waits.into_iter().all(|it| it.join().unwrap().is_none()));
        });
        // What comes yet changes nothing.
        arrivals.came(&a, PathBuf::new());
        assert!(arrivals.next().is_none() && arrivals.waiting() == 1);
        drop(more);
        assert_eq!(arrivals.into_files().unwrap_err().to_string(), "the wire is cut");
    }

    #[test]
    fn who_needs_nothing_waits_for_nothing() {
        let arrivals = Arrivals::of(&[]);
        let more = arrivals.expected();
        assert!(arrivals.next().is_none());
        arrivals.came(&wheel("a", 1), PathBuf::new());
        drop(more);
        assert_eq!(arrivals.into_files().unwrap().len(), 1);
    }

    #[test]
    fn what_never_comes_is_not_waited_for() {
        let needy = group("needy", &[&wheel("a", 1)], &[]);
        let arrivals = Arrivals::of(&[&needy]);
        std::thread::scope(|scope| {
            let more = arrivals.expected();
            let waits = scope.spawn(|| name_of(arrivals.next()));
            drop(more);
            assert_eq!(waits.join().unwrap(), Some("needy"));
        });
    }
}
