//! What the services send and take, as far as it is used.

pub(crate) mod balancer;
pub(crate) mod compute;
pub(crate) mod network;

/// Says of types with an `id` what they are called and which service has them.
macro_rules! served {
    ($($type:ty: $one:literal, $many:literal, $service:ident, $path:literal $(, $list:literal)?;)+) => {$(
        impl cloudkeel_toolkit::HasId for $type {
            type Id = String;

            fn id(&self) -> String {
                self.id.clone()
            }
        }

        impl cloudkeel_toolkit::Resource for $type {
            const ONE: &'static str = $one;
            const MANY: &'static str = $many;
        }

        impl crate::client::Served for $type {
            const SERVICE: crate::client::Service = crate::client::Service::$service;
            const PATH: &'static str = $path;
            $(const LIST: &'static str = $list;)?
        }
    )+};
}
pub(crate) use served;
