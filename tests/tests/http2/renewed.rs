//! A certificate that is replaced while clients are there.

use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::until;

use super::{GREETING, address_of, bridge, post, sent};
use crate::face_tls::Files;

#[tokio::test]
async fn connections_go_on_when_the_certificate_is_replaced_and_new_ones_are_shown_the_new_one() {
    let files = Files::new();
    let upstream = Upstream::http(Script::new("up", Revision::R2025_11_25)).await;
    let gateway = Gateway::serve(&Config::new().over_tls().section(&files.section("")).upstream(&upstream)).await;
    let address = address_of(&gateway);
    let shown = async || {
        let stream = bridge::secured(&files.authority, address, &[b"h2"]).await.expect("it speaks HTTP/2");
        let all = stream.get_ref().1.peer_certificates().expect("it has shown one");
        all.first().map(|one| one.to_vec()).expect("it has shown one")
    };
    let first = shown().await;
    let old = bridge::client(&files.authority, address).await;
    assert_eq!(sent(&old, post(address, GREETING)).await.expect("an answer").status(), 200);
    files.renew("127.0.0.1", 2998);
    until("the new certificate is shown", || async { (shown().await != first).then_some(()) }).await;
    let new = bridge::client(&files.authority, address).await;
    for (which, connection) in [("the new one", &new), ("the old one", &old), ("the new one", &new)] {
        let answer = sent(connection, post(address, GREETING)).await;
        assert_eq!(answer.expect(which).status(), 200, "{which}");
    }
    assert!(!old.is_closed(), "the old one takes more");
}
