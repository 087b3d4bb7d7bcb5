//! The commands, a file each: arguments, and what is done with them.

pub mod backup;
pub mod bench;
mod checking;
pub mod cluster;
pub mod completions;
pub mod config;
pub mod corpus;
pub mod dedup;
pub mod demo;
pub mod distance;
pub mod documents;
pub mod evaluate;
pub mod find;
pub mod find_clusters;
pub mod find_pairs;
pub mod hash;
pub mod insert;
pub mod man_pages;
mod pipeline;
pub mod ready;
pub mod recipes;
pub mod remove;
pub mod serve;
pub mod size;
pub mod storage;
pub mod text;
pub mod token;
