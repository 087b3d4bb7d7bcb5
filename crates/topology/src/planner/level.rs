//! Levels: how much weight nodes hold for each unit of their capacity.

use crate::ids::ShardId;
use crate::planner::Task;
use crate::planner::candidate::Candidate;

/// The heaviest shards: those of some weight and above.
struct Heaviest {
    /// The weight of the lightest of them.
    lightest: u64,
    count: usize,
    sum: u64,
}

/// The level of all nodes if all were alike.
pub(super) fn mean(task: &Task) -> f64 {
    let capacity: f64 = task.nodes.iter().map(capacity).sum();
    weight_of_all(task) / capacity
}

/// The weight of each node at the fair level of its zone.
pub(super) fn fair_loads(task: &Task) -> Vec<f64> {
    let fair = fair(task);
    let nodes = task.nodes.iter().enumerate();
    let load = |(place, node): (usize, &Candidate)| fair[task.zones.of(place)] * capacity(node);
    nodes.map(load).collect()
}

/// The level of the nodes of each zone if all nodes were as alike as the numbers of replicas in zones let
/// them be.
fn fair(task: &Task) -> Vec<f64> {
    let zones = &task.zones;
    let mut capacities = vec![0.0; zones.count()];
    for (place, node) in task.nodes.iter().enumerate() {
        capacities[zones.of(place)] += capacity(node);
    }
    let all = task.weights.sum(ShardId::all()) as f64;
    let bound = |replicas: usize, zone: usize| replicas as f64 * all / capacities[zone];
    let at = |level: f64, zone: usize| {
        let fewest = bound(zones.fewest[zone], zone);
        level.max(fewest).min(bound(zones.most[zone], zone))
    };
    let places = || 0..zones.count();
    let highest = places().map(|zone| bound(zones.most[zone], zone));
    let is_enough = |level: f64| {
        let loads = places().map(|zone| at(level, zone) * capacities[zone]);
        loads.sum::<f64>() >= weight_of_all(task)
    };
    let level = lowest(0.0, highest.fold(0.0, f64::max), is_enough);
    places().map(|zone| at(level, zone)).collect()
}

/// A level that the highest node has at least, whatever the plan.
///
/// At a level, a node has room for some of the heaviest shards, by their number and by their sum, and
/// for each of them once. A zone takes each of them at least and at most a number of times. The
/// heaviest shards must find room.
pub(super) fn least(task: &Task) -> f64 {
    let heaviest = heaviest(task);
    let has_room = |level: f64| heaviest.iter().all(|some| have_room(task, level, some));
    let mean = mean(task);
    let lowest_node = task.nodes.iter().map(|node| node.capacity.get()).min();
    let all_on_lowest = weight_of_all(task) / f64::from(lowest_node.unwrap_or(1));
    lowest(mean, all_on_lowest, has_room)
}

/// The lowest level between two at which something holds, which holds at the greater one.
pub(super) fn lowest(low: f64, high: f64, holds: impl Fn(f64) -> bool) -> f64 {
    /// Halvings, after which nothing is left of a range of floats.
    const HALVINGS: usize = 64;
    if holds(low) {
        return low;
    }
    let (mut low, mut high) = (low, high);
    for _ in 0..HALVINGS {
        let middle = low.midpoint(high);
        if holds(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

fn capacity(node: &Candidate) -> f64 {
    f64::from(node.capacity.get())
}

fn weight_of_all(task: &Task) -> f64 {
    task.weights.sum(ShardId::all()) as f64 * task.replicas as f64
}

/// The sets of heaviest shards, smallest first.
fn heaviest(task: &Task) -> Vec<Heaviest> {
    let mut weights: Vec<u64> = ShardId::all().map(|s| task.weights.of(s)).collect();
    weights.sort_unstable_by(|a, b| b.cmp(a));
    let mut sets: Vec<Heaviest> = Vec::new();
    let mut sum = 0;
    for (place, &lightest) in weights.iter().enumerate() {
        sum += lightest;
        let count = place + 1;
        sets.pop_if(|set| set.lightest == lightest);
        sets.push(Heaviest {
            lightest,
            count,
            sum,
        });
    }
    sets
}

/// Whether all replicas of some shards could have room at a level.
fn have_room(task: &Task, level: f64, some: &Heaviest) -> bool {
    let zones = &task.zones;
    let (each_count, each_sum) = (some.count as f64, some.sum as f64);
    let mut room = vec![(0.0, 0.0); zones.count()];
    for (place, node) in task.nodes.iter().enumerate() {
        let most = level * capacity(node);
        let (count, sum) = &mut room[zones.of(place)];
        *count += (most / some.lightest as f64).floor().min(each_count);
        *sum += most.min(each_sum);
    }
    let (mut all_count, mut all_sum) = (0.0, 0.0);
    for (zone, &(count, sum)) in room.iter().enumerate() {
        let (fewest, most) = (zones.fewest[zone] as f64, zones.most[zone] as f64);
        if count < fewest * each_count || sum < fewest * each_sum {
            return false;
        }
        all_count += count.min(most * each_count);
        all_sum += sum.min(most * each_sum);
    }
    let replicas = task.replicas as f64;
    all_count >= replicas * each_count && all_sum >= replicas * each_sum
}
