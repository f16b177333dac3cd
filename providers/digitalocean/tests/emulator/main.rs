//! The DigitalOcean provider on the emulator of DigitalOcean's API, capability by capability.

#[cfg(test)]
mod annotations;
#[cfg(test)]
mod background;
#[cfg(test)]
mod budget;
#[cfg(test)]
mod lab;
#[cfg(test)]
mod nodes;
#[cfg(test)]
mod services;
mod shared;
#[cfg(test)]
mod start;
#[cfg(test)]
mod swap;
#[cfg(test)]
mod webhook;
