//! The simulated cloud, and the provider that speaks its API, on their own and together.

#[cfg(test)]
mod api;
#[cfg(test)]
mod balancer_owners;
#[cfg(test)]
mod balancer_targets;
#[cfg(test)]
mod balancers;
#[cfg(test)]
mod consistency;
#[cfg(test)]
mod control;
#[cfg(test)]
mod convergence;
#[cfg(test)]
mod determinism;
#[cfg(test)]
mod fault;
#[cfg(test)]
mod fault_matrix;
#[cfg(test)]
mod instances;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod provider;
#[cfg(test)]
mod routes;
#[cfg(test)]
mod scale;
#[cfg(test)]
mod sockets;
#[cfg(test)]
mod support;
