//! A search of all states, breadth first, so that the trace of a breach is a shortest one.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use super::actions::{Action, act, actions};
use super::checks::{Promise, broken};
use super::key::key;
use super::world::{Config, World};

/// What a search found.
pub(super) struct Found {
    pub(super) states: usize,
    /// Whether these are all.
    pub(super) has_ended: bool,
    pub(super) breach: Option<(Promise, Vec<Action>)>,
}

/// How many states may wait in all searches together: each is some kilobytes large.
pub(super) const MOST_WAITING: usize = 1 << 20;

/// How many states are visited at most. The largest configurations have more than a long test has time for.
pub(super) const MOST_STATES: usize = 10_000_000;

/// The state to go on from: the first one, so that traces are short, but the last one while too many wait.
fn next(waiting: &mut VecDeque<(u32, World)>, most_waiting: usize) -> Option<(u32, World)> {
    if waiting.len() < most_waiting {
        waiting.pop_front()
    } else {
        waiting.pop_back()
    }
}

/// Visits every state, up to [`MOST_STATES`]. Ends at the first one that breaks a promise. Not many more than
/// `most_waiting` states wait.
pub(super) fn search(config: &Config, most_waiting: usize) -> Found {
    let mut first = World::new(config);
    for &action in config.before {
        let next = act(config, &first, action);
        first = next.expect("it can happen").0;
    }
    let mut seen = HashSet::<u64, BuildHasherDefault<AsItIs>>::default();
    seen.insert(key(&first));
    // How each state was reached first: the state before, and the action.
    let mut reached: Vec<(u32, Action)> = vec![(0, Action::Begin)];
    let mut waiting = VecDeque::from([(0, first)]);
    let mut possible = Vec::new();
    while seen.len() < MOST_STATES
        && let Some((at, world)) = next(&mut waiting, most_waiting)
    {
        possible.clear();
        actions(config, &world, &mut possible);
        for &action in &possible {
            let Some((next, breach)) = act(config, &world, action) else {
                continue;
            };
            let is_new = breach.is_some() || seen.insert(key(&next));
            if !is_new {
                continue;
            }
            if let Some(promise) = breach.or_else(|| broken(config, &world, &next)) {
                return Found {
                    states: seen.len(),
                    has_ended: false,
                    breach: Some((promise, trace(config, &reached, at, action))),
                };
            }
            waiting.push_back((reached.len() as u32, next));
            reached.push((at, action));
        }
    }
    Found {
        states: seen.len(),
        has_ended: waiting.is_empty(),
        breach: None,
    }
}

/// All actions that lead to a state, and a last one.
fn trace(config: &Config, reached: &[(u32, Action)], mut at: u32, last: Action) -> Vec<Action> {
    let mut actions = vec![last];
    while at != 0 {
        let (before, action) = reached[at as usize];
        actions.push(action);
        at = before;
    }
    actions.extend(config.before.iter().rev());
    actions.reverse();
    actions
}

/// Keys are hashes already.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are numbers");
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}
