//! Histogram buckets, as upstream.

/// `N` bounds, each `factor` times the one before. Multiplied step by step as the Go library does, so
/// that the bounds are the same numbers to the last bit.
const fn exponential<const N: usize>(start: f64, factor: f64) -> [f64; N] {
    let mut bounds = [start; N];
    let mut rest: &mut [f64] = &mut bounds;
    let mut bound = start;
    while let [first, others @ ..] = rest {
        *first = bound;
        bound *= factor;
        rest = others;
    }
    bounds
}

/// A Node from its creation until it is initialized: 1 s to 17 min.
pub(super) const NODE_DELAY: &[f64] = &exponential::<6>(1.0, 4.0);

/// One pass over the Nodes that are not ready: 1 ms to 16 s.
pub(super) const MONITOR_PASS: &[f64] = &exponential::<15>(0.001, 2.0);

/// Load balancer updates after Node changes: 1 s to 4.5 h.
pub(super) const NODE_SYNC: &[f64] = &exponential::<15>(1.0, 2.0);

/// Work queues: 10 ns to 10 s.
pub(super) const QUEUE: &[f64] = &exponential::<10>(10e-9, 10.0);

/// Requests to the Kubernetes API.
pub(super) const REST_CLIENT: &[f64] = &[
    0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0,
];

/// Webhook requests.
pub(super) const WEBHOOK: &[f64] = &[0.25, 0.5, 0.7, 1.0, 1.5, 3.0, 5.0, 10.0];

/// Calls to a cloud: 10 ms to 82 s.
pub(super) const CLOUD_CALL: &[f64] = &exponential::<14>(0.01, 2.0);

/// CIDRs tried until a free one is found.
pub(super) const CIDR_TRIES: &[f64] = &exponential::<5>(1.0, 5.0);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_grow_by_the_factor() {
        assert_eq!(NODE_DELAY, [1.0, 4.0, 16.0, 64.0, 256.0, 1024.0]);
        assert_eq!(NODE_SYNC.last(), Some(&16384.0));
        assert_eq!(MONITOR_PASS.first(), Some(&0.001));
        assert_eq!(MONITOR_PASS.len(), 15);
    }

    #[test]
    fn queue_bounds_carry_the_rounding_of_the_go_library() {
        assert_eq!(QUEUE.get(3), Some(&9.999_999_999_999_999e-6));
        assert_eq!(QUEUE.last(), Some(&10.0));
    }
}
