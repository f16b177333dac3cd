//! A small cloud behind a REST API, in two forms over one world.
//!
//! | module | feature | what it gives |
//! |---|---|---|
//! | [`simulated_cloud`] | – | the world, its REST API and its faults; nothing outside of it moves |

pub mod simulated_cloud;
