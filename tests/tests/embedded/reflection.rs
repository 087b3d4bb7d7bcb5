//! Reflection, by which tools learn the interface: both versions of it.

use futures_util::stream;
use simshard_testkit::TestCluster;
use tonic::Request;
use tonic::transport::Endpoint;
use tonic_reflection::pb::{v1, v1alpha};

#[tokio::test]
async fn both_versions_of_reflection_name_the_services() {
    let cluster = TestCluster::start(1).await;
    let channel = Endpoint::from_shared(cluster.url()).unwrap().connect_lazy();
    let named = |names: Vec<String>| {
        for expected in [
            "simshard.v1.CorpusService",
            "simshard.admin.v1.AdminService",
        ] {
            assert!(names.iter().any(|name| name == expected), "{names:?}");
        }
    };
    {
        use v1::server_reflection_request::MessageRequest;
        use v1::server_reflection_response::MessageResponse;
        let request = v1::ServerReflectionRequest {
            message_request: Some(MessageRequest::ListServices(String::new())),
            ..v1::ServerReflectionRequest::default()
        };
        let mut client = v1::server_reflection_client::ServerReflectionClient::new(channel.clone());
        let answers = client.server_reflection_info(Request::new(stream::iter([request])));
        let answer = answers.await.unwrap().into_inner().message().await.unwrap();
        let Some(MessageResponse::ListServicesResponse(list)) = answer.unwrap().message_response
        else {
            panic!("another answer");
        };
        named(list.service.into_iter().map(|one| one.name).collect());
    }
    {
        use v1alpha::server_reflection_request::MessageRequest;
        use v1alpha::server_reflection_response::MessageResponse;
        let request = v1alpha::ServerReflectionRequest {
            message_request: Some(MessageRequest::ListServices(String::new())),
            ..v1alpha::ServerReflectionRequest::default()
        };
        let mut client = v1alpha::server_reflection_client::ServerReflectionClient::new(channel);
        let answers = client.server_reflection_info(Request::new(stream::iter([request])));
        let answer = answers.await.unwrap().into_inner().message().await.unwrap();
        let Some(MessageResponse::ListServicesResponse(list)) = answer.unwrap().message_response
        else {
            panic!("another answer");
        };
        named(list.service.into_iter().map(|one| one.name).collect());
    }
    cluster.stop().await;
}
