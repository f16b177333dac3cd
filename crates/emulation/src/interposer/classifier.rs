//! Which operation a request is, and whether it could change something: as data, for each API.

use http::request::Parts;

use crate::cloud::params_of;
use crate::params::Params;
use crate::xml::first_inside;

/// One way to name the operation of a request.
#[derive(Debug, Clone, Copy)]
pub enum Rule {
    /// By method and path. `{…}` stands for one segment, `*` at the end for the rest.
    Path {
        /// The HTTP method.
        method: &'static str,
        /// The pattern, such as `/v2.0/ports/{id}`.
        path: &'static str,
        /// The name of the operation.
        operation: &'static str,
        /// Whether it could change something.
        mutating: bool,
    },
    /// By a parameter of the query or the form, such as `Action` or `command`, whose value is the name.
    Param {
        /// The parameter.
        param: &'static str,
        /// What the names of operations that only read begin with.
        reads: &'static [&'static str],
    },
    /// By a header, whose last part behind a dot is the name.
    Header {
        /// The header, such as `x-amz-target`.
        header: &'static str,
        /// What the names of operations that only read begin with.
        reads: &'static [&'static str],
    },
    /// By the element inside the body of a SOAP envelope.
    Soap {
        /// What the names of operations that only read begin with.
        reads: &'static [&'static str],
    },
}

/// How an interposer names operations. The first rule that applies names a request; one without a rule is named by its
/// method and path, and changes nothing if it is a `GET`, `HEAD` or `OPTIONS`.
#[derive(Debug, Clone, Copy)]
pub struct Classifier {
    /// The rules, in order.
    pub rules: &'static [Rule],
    /// The parameter with the number of a page, if pages have numbers.
    pub page_param: Option<&'static str>,
}

/// What a request is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Classified {
    /// The name of the operation.
    pub operation: String,
    /// Whether it could change something.
    pub mutating: bool,
    /// The resource in its path, if there is one: the last segment that stands for one.
    pub resource: Option<String>,
    /// The page that it asks for.
    pub page: u64,
}

impl Classifier {
    /// Names requests by method and path.
    pub const BY_METHOD: Self = Self {
        rules: &[],
        page_param: None,
    };

    /// Names the operation of a request.
    pub fn classify(&self, head: &Parts, body: &[u8]) -> Classified {
        let query = head.uri.query().unwrap_or_default();
        let params = params_of(query, &head.headers, body);
        let page = self.page_param.and_then(|param| params.get(param));
        let page = page.and_then(|page| page.parse().ok()).unwrap_or(1);
        let applied = |rule: &Rule| rule.apply(head, &params, body);
        let (operation, mutating, resource) = self
            .rules
            .iter()
            .find_map(applied)
            .unwrap_or_else(|| by_method(head));
        Classified {
            operation,
            mutating,
            resource,
            page,
        }
    }
}

type Named = (String, bool, Option<String>);

impl Rule {
    fn apply(&self, head: &Parts, params: &Params, body: &[u8]) -> Option<Named> {
        let named = |name: &str, reads: &[&str]| {
            let mutating = !reads.iter().any(|read| name.starts_with(read));
            (name.to_owned(), mutating, None)
        };
        match self {
            Self::Path {
                method,
                path,
                operation,
                mutating,
            } => {
                let resource = matched(path, head.uri.path())?;
                let fits = head.method.as_str() == *method;
                fits.then(|| ((*operation).to_owned(), *mutating, resource))
            }
            Self::Param { param, reads } => {
                let name = params.get(param)?;
                Some(named(name, reads))
            }
            Self::Header { header, reads } => {
                let value = head.headers.get(*header)?.to_str().ok()?;
                let name = value.rsplit_once('.').map_or(value, |(_, name)| name);
                Some(named(name, reads))
            }
            Self::Soap { reads } => {
                let text = std::str::from_utf8(body).ok()?;
                Some(named(first_inside(text, "Body")?, reads))
            }
        }
    }
}

/// Whether a path fits a pattern, and the last segment that it leaves open.
#[expect(
    clippy::option_option,
    reason = "a path that fits may name no resource"
)]
fn matched(pattern: &str, path: &str) -> Option<Option<String>> {
    let mut segments = path.split('/');
    let mut resource = None;
    for wanted in pattern.split('/') {
        if wanted == "*" {
            return Some(resource);
        }
        let segment = segments.next()?;
        if wanted.starts_with('{') {
            resource = Some(segment.to_owned());
        } else if wanted != segment {
            return None;
        }
    }
    segments.next().is_none().then_some(resource)
}

/// `GET /servers/{id}`: a segment in the form of an ID stands for one.
fn by_method(head: &Parts) -> Named {
    let mut resource = None;
    let segments = head.uri.path().split('/').map(|segment| {
        if looks_like_id(segment) {
            resource = Some(segment.to_owned());
            return "{id}";
        }
        segment
    });
    let path = segments.collect::<Vec<_>>().join("/");
    let mutating = !matches!(head.method.as_str(), "GET" | "HEAD" | "OPTIONS");
    (format!("{} {path}", head.method), mutating, resource)
}

/// A number, or at least eight letters and dashes with a digit among them.
fn looks_like_id(segment: &str) -> bool {
    let digits = segment.bytes().filter(u8::is_ascii_digit).count();
    digits > 0 && (digits == segment.len() || segment.len() >= 8)
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    const MIXED: Classifier = Classifier {
        rules: &[
            Rule::Path {
                method: "POST",
                path: "/v3/auth/tokens",
                operation: "login",
                mutating: false,
            },
            Rule::Path {
                method: "GET",
                path: "/pools/{pool}/members/{id}",
                operation: "get-member",
                mutating: false,
            },
            Rule::Path {
                method: "PUT",
                path: "/files/*",
                operation: "put-file",
                mutating: true,
            },
            Rule::Param {
                param: "Action",
                reads: &["Describe"],
            },
            Rule::Param {
                param: "command",
                reads: &["list", "query"],
            },
            Rule::Header {
                header: "x-amz-target",
                reads: &["Get"],
            },
            Rule::Soap {
                reads: &["Retrieve", "Login"],
            },
        ],
        page_param: Some("page"),
    };

    fn classified(
        classifier: &Classifier,
        method: &str,
        uri: &str,
        header: (&str, &str),
        body: &str,
    ) -> Classified {
        let request = Request::builder().method(method).uri(uri);
        let request = request.header(header.0, header.1).body(()).unwrap();
        classifier.classify(&request.into_parts().0, body.as_bytes())
    }

    #[test]
    fn an_operation_is_named_by_path_parameter_header_or_envelope() {
        let form = ("content-type", "application/x-www-form-urlencoded");
        let target = ("x-amz-target", "AWSService_20.GetThing");
        let none = ("x-none", "");
        let soap = |name: &str| format!("<e:Envelope><e:Body><v:{name}/></e:Body></e:Envelope>");
        let retrieve = soap("RetrieveProperties");
        let power_off = soap("PowerOffVM_Task");
        for (request, header, body, expected) in [
            ("POST /v3/auth/tokens", none, "{}", "login reads"),
            ("GET /pools/p/members/m", none, "", "get-member reads m"),
            ("PUT /files/a/b", none, "", "put-file changes"),
            (
                "GET /?Action=DescribeDisks",
                none,
                "",
                "DescribeDisks reads",
            ),
            ("POST /", form, "Action=NewDisk&Size=1", "NewDisk changes"),
            ("GET /api?command=listZones", none, "", "listZones reads"),
            ("GET /api?command=deployVM", none, "", "deployVM changes"),
            ("POST /", target, "{}", "GetThing reads"),
            ("POST /sdk", none, &retrieve, "RetrieveProperties reads"),
            ("POST /sdk", none, &power_off, "PowerOffVM_Task changes"),
            (
                "DELETE /disks/17",
                none,
                "",
                "DELETE /disks/{id} changes 17",
            ),
            ("GET /v2/disks", none, "", "GET /v2/disks reads"),
        ] {
            let (method, uri) = request.split_once(' ').unwrap();
            let found = classified(&MIXED, method, uri, header, body);
            let what = if found.mutating { "changes" } else { "reads" };
            let resource = found
                .resource
                .map_or_else(String::new, |id| format!(" {id}"));
            let found = format!("{} {what}{resource}", found.operation);
            assert_eq!(found, expected, "{request} {body}");
        }
        let page = classified(&MIXED, "GET", "/x?page=7", none, "").page;
        assert_eq!(page, 7);
    }

    #[test]
    fn without_rules_the_method_decides() {
        for (method, mutating) in [
            ("GET", false),
            ("HEAD", false),
            ("POST", true),
            ("PUT", true),
        ] {
            let none = ("x-none", "");
            let found = classified(&Classifier::BY_METHOD, method, "/a", none, "");
            assert_eq!(found.mutating, mutating, "{method}");
        }
    }
}
