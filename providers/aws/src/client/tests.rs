use cloudkeel_http::testing::{Reply, Script};

use super::*;
use crate::wire::Subnet;

/// All services in one, which answers like this.
pub(crate) fn api(replies: impl IntoIterator<Item = Reply>) -> (Api, Arc<Script>) {
    let script = Script::new(replies);
    let client = Client::builder("https://ec2.example.com")
        .transport(Arc::<Script>::clone(&script))
        .error_map(refusals())
        .retry(RetryPolicy::never())
        .build()
        .unwrap();
    let clients = Service::ALL.map(|service| (service, client.clone()));
    let clients = BTreeMap::from(clients);
    let clients = Arc::new(clients);
    (Api { clients }, script)
}

async fn subnets(replies: impl IntoIterator<Item = Reply>) -> Result<Vec<Subnet>, CloudError> {
    let (api, _) = api(replies);
    let call = Call::ec2("DescribeSubnets");
    api.all_of_ec2(call, "subnetSet/item", Priority::Normal)
        .await
}

fn page(ids: &[&str], next: &str) -> Reply {
    let item = |id: &&str| {
        format!(
            "<item><subnetId>{id}</subnetId><vpcId>v</vpcId><cidrBlock>10.0.0.0/24</cidrBlock>\
             <availabilityZone>a</availabilityZone></item>"
        )
    };
    let items: String = ids.iter().map(item).collect();
    let text = format!(
        "<DescribeSubnetsResponse xmlns='http://ec2.amazonaws.com/doc/2016-11-15/'>\
         <requestId>r</requestId><subnetSet>{items}</subnetSet><nextToken>{next}</nextToken>\
         </DescribeSubnetsResponse>"
    );
    Reply::text(200, &text)
}

#[tokio::test]
async fn a_list_is_read_to_its_last_page() {
    let found = subnets([page(&["s-1", "s-2"], "t"), page(&["s-3"], "")]).await;
    let ids: Vec<_> = found.unwrap().iter().map(HasId::id).collect();
    assert_eq!(ids, ["s-1", "s-2", "s-3"]);
}

/// EC2 refuses a page of more.
#[tokio::test]
async fn no_page_is_larger_than_ec2_allows() {
    for (action, page) in [("DescribeSubnets", 1000), ("DescribeRouteTables", 100)] {
        let (api, script) = api([Reply::text(
            200,
            format!("<{action}Response><s/></{action}Response>"),
        )]);
        let call = Call::ec2(action);
        let all: Vec<Subnet> = api
            .all_of_ec2(call, "s/item", Priority::Normal)
            .await
            .unwrap();
        assert_eq!(all, []);
        let seen = script.seen();
        let body = String::from_utf8_lossy(seen[0].body());
        assert!(body.ends_with(&format!("MaxResults={page}")), "{body}");
    }
}

#[tokio::test]
async fn what_is_no_answer_of_this_action_is_never_an_empty_list() {
    for (case, body) in [
        ("a page of HTML", "<html><body/></html>"),
        (
            "another document",
            "<DescribeVpcsResponse><vpcSet/></DescribeVpcsResponse>",
        ),
        (
            "no list",
            "<DescribeSubnetsResponse><requestId>r</requestId></DescribeSubnetsResponse>",
        ),
        ("cut off", "<DescribeSubnetsResponse><subnetSet>"),
        (
            "an item without its ID",
            "<DescribeSubnetsResponse><subnetSet><item/></subnetSet></DescribeSubnetsResponse>",
        ),
        ("empty", ""),
    ] {
        let error = subnets([Reply::text(200, body)]).await.unwrap_err();
        assert_eq!(
            error.kind(),
            cloudkeel_api::ErrorKind::Malformed,
            "{case}: {error}"
        );
    }
    assert_eq!(subnets([page(&[], "")]).await.unwrap(), []);
}
