use cloudkeel_http::ErrorMap;
use http::{HeaderMap, StatusCode};

use super::*;

fn fault(detail: &str) -> String {
    format!(
        "<e:Envelope xmlns:e='x'><e:Body><e:Fault><faultcode>ServerFaultCode</faultcode>\
         <faultstring>no</faultstring>{detail}</e:Fault></e:Body></e:Envelope>"
    )
}

#[test]
fn a_fault_means_what_its_type_says() {
    for (detail, expected) in [
        (
            "<detail><NotAuthenticatedFault i:type='NotAuthenticated'/></detail>",
            ErrorKind::Unauthenticated,
        ),
        (
            "<detail><InvalidLoginFault/></detail>",
            ErrorKind::Unauthenticated,
        ),
        (
            "<detail><NoPermissionFault i:type='NoPermission'/></detail>",
            ErrorKind::Denied,
        ),
        (
            "<detail><ManagedObjectNotFoundFault/></detail>",
            ErrorKind::Incomplete,
        ),
        (
            "<detail><RuntimeFaultFault/></detail>",
            ErrorKind::Unavailable,
        ),
        ("", ErrorKind::Unavailable),
    ] {
        let body = fault(detail);
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        let problem = soap_refusals().classify(status, &HeaderMap::new(), body.as_bytes());
        assert_eq!(problem.kind, expected, "{detail}");
        assert_eq!(problem.message.as_deref(), Some("no"), "{detail}");
    }
}

#[test]
fn no_refusal_says_that_a_machine_is_gone() {
    let bodies = [
        fault("<detail><ManagedObjectNotFoundFault/></detail>"),
        r#"{"type":"com.vmware.vapi.std.errors.not_found","value":{}}"#.to_owned(),
        "<html/>".to_owned(),
        String::new(),
    ];
    for body in bodies {
        for status in [404, 410, 500] {
            let status = StatusCode::from_u16(status).unwrap();
            for table in [soap_refusals(), rest_refusals()] {
                let problem = table.classify(status, &HeaderMap::new(), body.as_bytes());
                assert_ne!(problem.kind, ErrorKind::NotFound, "{status} {body}");
            }
        }
    }
}

#[test]
fn objects_without_properties_for_want_of_a_session_are_a_refusal() {
    let answer = |fault: &str| {
        format!(
            "<e:Envelope><e:Body><RetrievePropertiesExResponse><returnval><objects>\
             <obj type='VirtualMachine'>vm-1</obj><missingSet><path>name</path><fault>\
             <fault i:type='{fault}'/></fault></missingSet></objects></returnval>\
             </RetrievePropertiesExResponse></e:Body></e:Envelope>"
        )
    };
    let found = |text: &str| {
        let problem = soap_refusals().classify_success(&HeaderMap::new(), text.as_bytes());
        problem.map(|problem| problem.kind)
    };
    assert_eq!(
        found(&answer("NotAuthenticated")),
        Some(ErrorKind::Unauthenticated)
    );
    assert_eq!(found(&answer("NoPermission")), None);
    let named =
        "<e:Envelope><e:Body><R><returnval>NotAuthenticated</returnval></R></e:Body></e:Envelope>";
    assert_eq!(found(named), None, "a machine may be called like that");
}
