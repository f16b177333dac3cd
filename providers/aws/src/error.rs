//! What AWS's refusals mean.

use cloudkeel_api::ErrorKind;
use cloudkeel_http::{CodeTable, Refusal};
use cloudkeel_toolkit::xml::Element;

/// Code and message, wherever the service puts them: EC2 writes `Response/Errors/Error`, the others
/// `ErrorResponse/Error`.
fn read(body: &[u8]) -> Option<Refusal> {
    let root = Element::parse(body).ok()?;
    let error = find(&root, "Error")?;
    let text = |element: &Element, path: &str| element.text_at(path).map(str::to_owned);
    let id = text(&root, "RequestID").or_else(|| text(&root, "RequestId"));
    Some(Refusal {
        code: Some(text(error, "Code")?),
        message: text(error, "Message"),
        request_id: id,
    })
}

fn find<'a>(element: &'a Element, name: &str) -> Option<&'a Element> {
    if element.name == name {
        return Some(element);
    }
    element.children.iter().find_map(|child| find(child, name))
}

/// The table of EC2, both load balancing APIs and STS. A code that is not in it goes by its status.
pub(crate) fn refusals() -> CodeTable {
    CodeTable::read_by(read)
        .on(NOT_FOUND, ErrorKind::NotFound)
        // What was observed has changed: observe again.
        .on(CONFLICT, ErrorKind::Conflict)
        .on(
            "InvalidGroup.Duplicate DuplicateLoadBalancerName",
            ErrorKind::AlreadyExists,
        )
        .on(BUSY, ErrorKind::Busy)
        .on(THROTTLED, ErrorKind::Throttled { retry_after: None })
        .on("RequestTimeout RequestTimeoutException", ErrorKind::Unavailable)
        .on(UNAUTHENTICATED, ErrorKind::Unauthenticated)
        .on(DENIED, ErrorKind::Denied)
        .on(LIMITS, ErrorKind::LimitExceeded)
        .on("UnsupportedOperation InvalidAction", ErrorKind::Unsupported)
        .on(INVALID, ErrorKind::Invalid)
}

/// The last three are targets: of a classic balancer, and of a target group.
const NOT_FOUND: &str = "\
    InvalidInstanceID.NotFound InvalidGroup.NotFound InvalidPermission.NotFound InvalidSubnetID.NotFound \
    InvalidRouteTableID.NotFound InvalidRoute.NotFound InvalidVolume.NotFound LoadBalancerNotFound \
    ListenerNotFound TargetGroupNotFound PolicyNotFound InvalidInstance InvalidEndPoint InvalidTarget";

const CONFLICT: &str = "\
    InvalidPermission.Duplicate RouteAlreadyExists DuplicateTargetGroupName DuplicateListener \
    DuplicatePolicyName";

const BUSY: &str = "\
    DependencyViolation ResourceInUse InvalidGroup.InUse IncorrectState IncorrectInstanceState";

/// The last one: load balancing itself is throttled by a service that it needs.
const THROTTLED: &str = "\
    RequestLimitExceeded Throttling ThrottlingException ThrottledException RequestThrottled \
    RequestThrottledException EC2ThrottledException TooManyRequestsException PriorRequestNotComplete \
    BandwidthLimitExceeded SlowDown DependencyThrottle";

const UNAUTHENTICATED: &str = "\
    AuthFailure ExpiredToken ExpiredTokenException RequestExpired InvalidClientTokenId \
    UnrecognizedClientException SignatureDoesNotMatch MissingAuthenticationToken IncompleteSignature";

const DENIED: &str = "\
    UnauthorizedOperation AccessDenied AccessDeniedException OptInRequired PendingVerification Blocked";

const LIMITS: &str = "\
    TooManyLoadBalancers TooManyListeners TooManyPolicies TooManyTags TooManyTargets TooManyTargetGroups \
    TooManyCertificates TooManyRegistrationsForTargetId TooManyUniqueTargetGroupsPerLoadBalancer \
    SecurityGroupLimitExceeded RulesPerSecurityGroupLimitExceeded SecurityGroupsPerInterfaceLimitExceeded \
    RouteLimitExceeded AddressLimitExceeded TagLimitExceeded";

/// Those that must never pass for an absence, whatever their status is.
const INVALID: &str = "\
    InvalidInstanceID.Malformed InvalidGroupId.Malformed InvalidID InvalidParameterValue ValidationError \
    CertificateNotFound SubnetNotFound";

#[cfg(test)]
mod tests {
    use cloudkeel_http::ErrorMap as _;
    use http::{HeaderMap, StatusCode};

    use super::*;

    fn kind_of(status: u16, body: &str) -> (ErrorKind, Option<String>) {
        let status = StatusCode::from_u16(status).unwrap();
        let problem = refusals().classify(status, &HeaderMap::new(), body.as_bytes());
        (problem.kind, problem.code)
    }

    #[test]
    fn a_code_is_found_in_every_envelope() {
        for body in [
            "<Response><Errors><Error><Code>AuthFailure</Code></Error></Errors></Response>",
            "<ErrorResponse xmlns='u'><Error><Type>Sender</Type><Code>AuthFailure</Code></Error></ErrorResponse>",
            "<ErrorResponse><Errors><Error><Code>AuthFailure</Code></Error></Errors></ErrorResponse>",
        ] {
            let (kind, code) = kind_of(401, body);
            assert_eq!(
                (kind, code.as_deref()),
                (ErrorKind::Unauthenticated, Some("AuthFailure"))
            );
        }
    }

    #[test]
    fn only_a_listed_code_says_that_something_is_not_there() {
        let coded = |code: &str| {
            format!("<Response><Errors><Error><Code>{code}</Code></Error></Errors></Response>")
        };
        for (case, status, body, expected) in [
            (
                "gone",
                400,
                coded("InvalidInstanceID.NotFound"),
                ErrorKind::NotFound,
            ),
            (
                "no ID at all",
                400,
                coded("InvalidInstanceID.Malformed"),
                ErrorKind::Invalid,
            ),
            ("a proxy", 404, "<html/>".to_owned(), ErrorKind::Malformed),
            (
                "another 404",
                404,
                coded("NoSuchThing"),
                ErrorKind::Malformed,
            ),
            (
                "throttled with 503",
                503,
                coded("RequestLimitExceeded"),
                ErrorKind::Throttled { retry_after: None },
            ),
            (
                "throttled with 400",
                400,
                coded("Throttling"),
                ErrorKind::Throttled { retry_after: None },
            ),
            (
                "throttled by what load balancing needs",
                400,
                coded("DependencyThrottle"),
                ErrorKind::Throttled { retry_after: None },
            ),
            (
                "too slow",
                400,
                coded("RequestTimeout"),
                ErrorKind::Unavailable,
            ),
            ("in use", 400, coded("DependencyViolation"), ErrorKind::Busy),
            (
                "a group in use",
                400,
                coded("InvalidGroup.InUse"),
                ErrorKind::Busy,
            ),
            (
                "expired",
                400,
                coded("ExpiredToken"),
                ErrorKind::Unauthenticated,
            ),
            ("unlisted", 400, coded("Whatever"), ErrorKind::Invalid),
            (
                "a failure",
                500,
                coded("InternalError"),
                ErrorKind::Unavailable,
            ),
        ] {
            assert_eq!(kind_of(status, &body).0, expected, "{case}");
        }
    }
}
