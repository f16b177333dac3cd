//! How the answer should look.

use crate::protobuf;

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Encoding {
    #[default]
    Json,
    Protobuf,
}

/// Which part of an object is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum View {
    #[default]
    Object,
    /// Rows and columns, for people.
    Table,
    /// The metadata alone.
    Metadata,
}

/// What an `Accept` header asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Accepted {
    pub(crate) encoding: Encoding,
    pub(crate) view: View,
    /// Whether JSON will do where the encoding is not spoken.
    pub(crate) or_json: bool,
}

impl Accepted {
    /// The first that is understood wins, as in a real API server.
    pub(crate) fn parse(header: &str) -> Self {
        let mut choices = header.split(',').filter_map(Self::parse_one);
        let Some(first) = choices.next() else {
            return Self {
                or_json: true,
                ..Self::default()
            };
        };
        let or_json = |other: Self| other.encoding == Encoding::Json;
        Self {
            or_json: or_json(first) || choices.any(or_json),
            ..first
        }
    }

    fn parse_one(text: &str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let encoding = match parts.next()? {
            protobuf::MEDIA_TYPE => Encoding::Protobuf,
            "application/json" | "application/*" | "*/*" => Encoding::Json,
            _ => return None,
        };
        let view = match parts.find_map(|part| part.strip_prefix("as=")) {
            Some("Table") if encoding == Encoding::Protobuf => return None,
            Some("Table") => View::Table,
            Some("PartialObjectMetadata" | "PartialObjectMetadataList") => View::Metadata,
            _ => View::Object,
        };
        Some(Self {
            encoding,
            view,
            or_json: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_is_understood_wins() {
        let asked = |header| {
            let accepted = Accepted::parse(header);
            (accepted.encoding, accepted.view, accepted.or_json)
        };
        let (json, protobuf) = (Encoding::Json, Encoding::Protobuf);
        for (header, expected) in [
            ("", (json, View::Object, true)),
            ("text/html, */*", (json, View::Object, true)),
            (
                "application/vnd.kubernetes.protobuf",
                (protobuf, View::Object, false),
            ),
            (
                "application/vnd.kubernetes.protobuf,application/json",
                (protobuf, View::Object, true),
            ),
            (
                "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
                (json, View::Table, true),
            ),
            (
                "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json",
                (protobuf, View::Metadata, true),
            ),
        ] {
            assert_eq!(asked(header), expected, "{header:?}");
        }
    }
}
