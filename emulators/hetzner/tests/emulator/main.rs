//! The emulator of the Hetzner Cloud and Robot APIs, call by call, and with Hetzner's own Go client.

#[cfg(test)]
mod access;
#[cfg(test)]
mod actions;
#[cfg(test)]
mod balancers;
#[cfg(test)]
mod certificates;
#[cfg(test)]
mod control;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod go_client;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod lists;
#[cfg(test)]
mod networks;
#[cfg(test)]
mod robot;
#[cfg(test)]
mod servers;
#[cfg(test)]
mod services;
#[cfg(test)]
mod support;
#[cfg(test)]
mod targets;
