//! The emulator of the DigitalOcean API, call by call, and with DigitalOcean's own Go client.

#[cfg(test)]
mod balancers;
#[cfg(test)]
mod go_client;
#[cfg(test)]
mod lists;
#[cfg(test)]
mod others;
#[cfg(test)]
mod support;
