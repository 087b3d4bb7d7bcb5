//! Clusters of several processes: what they promise while processes end, disks fail and layouts change.
//!
//! What crowds of clients do to a cluster is tested in `crowds/`, on its own, for it takes the whole machine.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod admin_service;
mod adoption;
mod bulk_load;
mod cancelled_streams;
mod certificates;
mod changed_layout;
mod changing_records;
mod clock_ahead;
mod corpora_while_away;
mod crashes;
mod created_while_away;
mod creations;
mod cut_off_metadata;
mod damaged_segments;
mod dead_nodes;
mod deletions;
mod documents_in_memory;
mod empty_corpora;
mod etcd;
mod failing_disk;
mod failovers;
mod filling_disk;
mod force;
mod fresh_starts;
mod full_disk;
mod given_up_changes;
mod guarded_etcd;
mod hung_disk;
mod installed_records;
mod interruptions;
mod killed_moves;
mod limited_copies;
mod listings;
mod load;
mod lost_metadata;
mod moves;
mod nemesis;
mod older_directories;
mod on_demand;
mod open_files;
mod outcomes;
mod readiness;
mod rebuilt;
mod records;
mod replicas;
mod roles;
mod scrubs;
mod searches_without_a_node;
mod short_absences;
mod side_ports;
mod slow_disk;
mod slow_requests;
mod staged_plans;
mod stale_replicas;
mod unreached;
mod upgrades;
