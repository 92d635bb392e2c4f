//! What is tried again, when, and for how long: data and one pure function. [`Retry`] is its thin edge.

use super::failure::{Cause, Failure};
use crate::interrupt;
use std::time::{Duration, Instant, SystemTime};

/// How patient one is with the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// From the first try to the last, waits included.
    pub budget: Duration,
    /// The pause after the first failure; each later one is twice as long.
    pub first: Duration,
    /// No pause is longer, but for one that the other side asks for.
    pub longest: Duration,
    /// How often other bytes than promised are taken for a fault on the way.
    pub corrupt: u32,
}

impl Policy {
    /// The pauses that suit registries and indexes, within a budget.
    pub const fn within(budget: Duration) -> Policy {
        let (first, longest) = (Duration::from_millis(500), Duration::from_secs(15));
        Policy { budget, first, longest, corrupt: 3 }
    }

    /// The pause before the next try; none where there is to be no other.
    ///
    /// `tries` were made, of which the first began `elapsed` ago. `jitter` is between 0 and 1: a pause is between half
    /// and the whole of its length, so that many clients do not come back at once. What the other side asks for is
    /// never shortened; where it is beyond the budget, waiting would be in vain.
    pub fn pause(&self, failure: &Failure, tries: u32, elapsed: Duration, jitter: f64) -> Option<Duration> {
        if !failure.cause.is_transient() || (failure.cause == Cause::Corrupt && tries >= self.corrupt) {
            return None;
        }
        let doubled = self.first.saturating_mul(2_u32.saturating_pow(tries.saturating_sub(1)));
        let own = doubled.min(self.longest).mul_f64(0.5 + jitter.clamp(0.0, 1.0) / 2.0);
        let pause = failure.retry_after.unwrap_or_default().max(own);
        (elapsed + pause <= self.budget).then_some(pause)
    }
}

/// Time, so that tests need not wait.
pub trait Clock: Sync {
    /// Now, on a clock that only goes forward.
    fn now(&self) -> Instant;
    /// Waits.
    fn sleep(&self, pause: Duration);
    /// Whether there is nothing to wait for any more.
    fn is_over(&self) -> bool {
        interrupt::check().is_err()
    }
}

/// The machine's own.
pub struct RealClock;

impl Clock for RealClock {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn sleep(&self, pause: Duration) {
        // Who sleeps asks afterwards whether it was interrupted.
        interrupt::sleep(pause).ok();
    }
}

/// The machine's own, on which no pause outlives what it was made for: where that is over, so is the pause.
pub struct Until<F>(pub F);

/// How long one may.
const STEP: Duration = Duration::from_millis(100);

impl<F: Fn() -> bool + Sync> Clock for Until<F> {
    fn now(&self) -> Instant {
        RealClock.now()
    }

    fn sleep(&self, pause: Duration) {
        let start = self.now();
        while !self.is_over() && start.elapsed() < pause {
            RealClock.sleep(STEP.min(pause.saturating_sub(start.elapsed())));
        }
    }

    fn is_over(&self) -> bool {
        RealClock.is_over() || (self.0)()
    }
}

/// Tries things again by a policy, and says so.
pub struct Retry<'a> {
    /// The policy.
    pub policy: Policy,
    /// Time.
    pub clock: &'a dyn Clock,
    /// Told of every pause and its reason.
    pub say: &'a dyn Fn(&str),
}

impl Retry<'_> {
    /// The result of the first try that succeeds, or the last failure. `what` is named when there is a pause.
    pub fn run<T>(&self, what: &str, mut once: impl FnMut() -> Result<T, Failure>) -> Result<T, Failure> {
        let start = self.clock.now();
        for tries in 1.. {
            let failure = match once() {
                Ok(done) => return Ok(done),
                Err(failure) => failure,
            };
            let elapsed = self.clock.now().duration_since(start);
            let Some(pause) = self.policy.pause(&failure, tries, elapsed, fastrand::f64()) else {
                return Err(failure.after(tries, elapsed));
            };
            (self.say)(&format!("{what}: {failure}; once more in {:.1} s", pause.as_secs_f64()));
            self.clock.sleep(pause);
            if self.clock.is_over() {
                return Err(failure);
            }
        }
        unreachable!("a u32 of tries does not fit into any budget")
    }
}

/// The time that `Retry-After` asks for: seconds, or a date; one that is past is no wait.
pub fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    let seconds = value.parse().ok().map(Duration::from_secs);
    let date = || httpdate::parse_http_date(value).ok();
    seconds.or_else(|| Some(date()?.duration_since(now).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};

    const POLICY: Policy = Policy::within(Duration::from_secs(60));

    #[test]
    fn what_may_pass_is_tried_again_and_what_will_not_is_not() {
        let again = |cause| POLICY.pause(&Failure::new(cause, ""), 1, Duration::ZERO, 1.0).is_some();
        for code in [408, 425, 429, 500, 502, 503, 504] {
            assert!(again(Cause::Status(code)), "{code}");
        }
        for code in [400, 401, 403, 404, 409, 413, 501] {
            assert!(!again(Cause::Status(code)), "{code}");
        }
        for cause in [Cause::Refused, Cause::Reset, Cause::Name, Cause::Timeout, Cause::Corrupt] {
            assert!(again(cause), "{cause:?}");
        }
        assert!(!again(Cause::Tls) && !again(Cause::Other(crate::problem::Id::Disk)));
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_end_with_the_budget() {
        let failure = Failure::new(Cause::Status(503), "");
        let pause = |tries, elapsed, jitter| {
            let pause = POLICY.pause(&failure, tries, Duration::from_secs(elapsed), jitter);
            pause.map(|pause| pause.as_millis())
        };
        let cases = [
            (1, 0, 1.0, Some(500)),
            (1, 0, 0.0, Some(250)),
            (2, 1, 1.0, Some(1000)),
            (5, 10, 1.0, Some(8000)),
            (6, 10, 1.0, Some(15000)),
            (60, 10, 1.0, Some(15000)),
            (6, 45, 1.0, Some(15000)),
            (6, 46, 1.0, None),
            (1, 60, 0.0, None),
        ];
        for (tries, elapsed, jitter, expected) in cases {
            assert_eq!(pause(tries, elapsed, jitter), expected, "{tries} {elapsed} {jitter}");
        }
    }

    #[test]
    fn what_the_other_side_asks_for_is_kept_or_not_waited_for() {
        let pause = |seconds| {
            let retry_after = Some(Duration::from_secs(seconds));
            let failure = Failure { retry_after, ..Failure::new(Cause::Status(429), "") };
            POLICY.pause(&failure, 1, Duration::from_secs(10), 1.0).map(|pause| pause.as_millis())
        };
        assert_eq!((pause(0), pause(7), pause(50), pause(51)), (Some(500), Some(7000), Some(50000), None));
    }

    #[test]
    fn corrupt_bytes_are_believed_after_a_few_tries() {
        let failure = Failure::new(Cause::Corrupt, "");
        let tries = (1..).take_while(|tries| POLICY.pause(&failure, *tries, Duration::ZERO, 0.0).is_some());
        assert_eq!(tries.count(), 2);
    }

    #[test]
    fn retry_after_is_a_number_or_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let cases = [
            ("120", Some(120)),
            (" 0 ", Some(0)),
            ("Sun, 06 Nov 1994 08:50:07 GMT", Some(30)),
            ("Sun, 06 Nov 1994 08:49:00 GMT", Some(0)),
            ("soon", None),
            ("-1", None),
        ];
        for (value, seconds) in cases {
            assert_eq!(retry_after(value, now), seconds.map(Duration::from_secs), "{value}");
        }
    }

    /// A clock that only sleeping moves.
    struct Still {
        start: Instant,
        slept: std::sync::Mutex<Duration>,
    }

    impl Clock for Still {
        fn now(&self) -> Instant {
            self.start + *self.slept.lock().unwrap()
        }

        fn sleep(&self, pause: Duration) {
            *self.slept.lock().unwrap() += pause;
        }
    }

    #[test]
    fn an_outage_of_a_minute_is_survived_and_one_beyond_the_budget_is_told() {
        let run = |outage: u64| {
            let clock = Still { start: Instant::now(), slept: Default::default() };
            let (said, calls) = (RefCell::new(Vec::new()), Cell::new(0));
            let say = |line: &str| said.borrow_mut().push(line.to_owned());
            let policy = Policy::within(Duration::from_secs(120));
            let retry = Retry { policy, clock: &clock, say: &say };
            let result = retry.run("push", || {
                calls.set(calls.get() + 1);
                match clock.now() - clock.start < Duration::from_secs(outage) {
                    true => Err(Failure::new(Cause::Refused, "connection refused")),
                    false => Ok(()),
                }
            });
            (result, calls.get(), said.into_inner())
        };
        let (result, calls, said) = run(60);
        assert!(result.is_ok());
        assert!((8..=16).contains(&calls) && said.len() == calls - 1, "{calls} calls");
        assert!(said[0].starts_with("push: connection refused; once more in 0."), "{said:?}");
        let failure = run(3600).0.unwrap_err().to_string();
        assert!(failure.contains("tries in 1"), "{failure}");
    }
}
