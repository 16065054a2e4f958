//! Who is let in over TCP, and who is not.

use std::net::SocketAddr;
use std::sync::Arc;

use api::{Config, Limits, Rate, ServeError, Server};
use tokio::net::TcpStream;

use crate::fake::{Fake, Options};
use crate::raw::{Answer, ask, request};
use crate::{TOKEN, listen};

struct Open {
    _server: Server,
    fake: Arc<Fake>,
    address: SocketAddr,
}

async fn open(limits: Limits) -> Open {
    let fake = Fake::new(Options::default());
    let config = Config { listen: Some(listen()), limits, ..Config::default() };
    let server = Server::start(fake.clone(), config).await.unwrap();
    Open { address: server.address().unwrap(), fake, _server: server }
}

impl Open {
    async fn ask(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let stream = TcpStream::connect(self.address).await.unwrap();
        ask(stream, &request(method, target, headers, body.as_bytes())).await
    }

    async fn get(&self, target: &str, headers: &[(&str, &str)]) -> Answer {
        self.ask("GET", target, headers, "").await
    }

    /// What the cookie of a new session is.
    async fn session(&self) -> String {
        let form = [("Content-Type", "application/x-www-form-urlencoded")];
        let answer = self.ask("POST", "/login", &form, &format!("token={TOKEN}")).await;
        assert_eq!((answer.status, answer.header("location")), (303, Some("/")), "{}", answer.text());
        let cookie = answer.header("set-cookie").unwrap();
        assert!(cookie.ends_with("; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict"), "{cookie}");
        assert!(!cookie.contains(TOKEN), "{cookie}");
        cookie.split(';').next().unwrap().to_owned()
    }
}

fn bearer() -> String {
    format!("Bearer {TOKEN}")
}

#[tokio::test]
async fn without_the_token_everything_is_401() {
    let open = open(Limits { wrong_tokens: Rate { per_second: 1.0, at_once: 1_000.0 }, ..Limits::default() }).await;
    let document = api::document();
    let mut targets: Vec<String> =
        document["paths"].as_object().unwrap().keys().map(|path| path.replace("{node}", "web-0")).collect();
    targets.extend(["/", "/nope", "/v1/nodes/%ff", "/assets/app.js"].map(str::to_owned));
    let wrong = format!("Bearer {}0", &TOKEN[..63]);
    let longer = format!("Bearer {TOKEN}0");
    let basic = format!("Basic {TOKEN}");
    for target in &targets {
        for method in ["GET", "POST", "HEAD", "DELETE"] {
            let answer = open.ask(method, target, &[], "").await;
            assert_eq!(answer.status, 401, "{method} {target}");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer realm=\"homeostat\""));
        }
        for shown in ["", "Bearer", "Bearer ", &wrong, &longer, &basic, TOKEN] {
            let answer = open.get(target, &[("Authorization", shown)]).await;
            answer.problem(401, "unauthorized");
            assert!(!answer.text().contains(&TOKEN[..32]));
        }
    }
    for target in ["/v1/status", "/metrics", "/healthz", "/v1/openapi.json"] {
        assert_eq!(open.get(target, &[("Authorization", &bearer())]).await.status, 200, "{target}");
    }
    assert_eq!(open.get("/v1/status", &[("Authorization", &format!("bEARER  {TOKEN}"))]).await.status, 200);
    open.get("/v1/status", &[("Authorization", &bearer()), ("Authorization", "Bearer x")])
        .await
        .problem(400, "malformed");
    open.get("/v1/status?token=x", &[("Authorization", &bearer())]).await;
}

#[tokio::test]
async fn wrong_tokens_are_slowed_down_and_the_right_one_is_not() {
    let open = open(Limits { wrong_tokens: Rate { per_second: 0.1, at_once: 3.0 }, ..Limits::default() }).await;
    for _ in 0..3 {
        open.get("/v1/status", &[("Authorization", "Bearer guess")]).await.problem(401, "unauthorized");
    }
    let slowed = open.get("/v1/status", &[("Authorization", "Bearer guess")]).await;
    slowed.problem(429, "rate");
    assert_eq!((slowed.header("retry-after"), slowed.header("connection")), (Some("10"), Some("close")));
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    open.ask("POST", "/login", &form, "token=guess").await.problem(429, "rate");
    assert_eq!(open.get("/v1/status", &[("Authorization", &bearer())]).await.status, 200);
    open.session().await;
}

#[tokio::test]
async fn another_name_for_this_machine_is_refused() {
    let open = open(Limits::default()).await;
    let port = open.address.port();
    let ours = ["localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:99", "192.168.1.7", "fleet.test:443", "localhost."];
    for host in ours.map(str::to_owned).into_iter().chain([format!("localhost:{port}")]) {
        let answer = open.get("/healthz", &[("Host", &host), ("Authorization", &bearer())]).await;
        assert_eq!(answer.status, 200, "{host}: {}", answer.text());
    }
    for host in ["evil.example", "localhost.evil.example", "evil.example:80", "127.0.0.1.evil.example"] {
        // With the token as well: it is the browser of somebody who has it.
        let answer = open.get("/healthz", &[("Host", host), ("Authorization", &bearer())]).await;
        assert!(answer.problem(421, "forbidden").contains(host.split(':').next().unwrap()));
        open.ask("POST", "/login", &[("Host", host)], "token=x").await.problem(421, "forbidden");
    }
    let absolute = open.get("http://evil.example/healthz", &[("Authorization", &bearer())]).await;
    absolute.problem(421, "forbidden");
    for wrong in ["", "a b", "localhost:http"] {
        assert_eq!(
            open.get("/healthz", &[("Host", wrong), ("Authorization", &bearer())]).await.status / 100,
            4,
            "{wrong:?}"
        );
    }
    let twice =
        open.get("/healthz", &[("Host", "localhost"), ("Host", "evil.example"), ("Authorization", &bearer())]).await;
    twice.problem(400, "malformed");
    let stream = TcpStream::connect(open.address).await.unwrap();
    let none = format!("GET /healthz HTTP/1.0\r\nAuthorization: {}\r\n\r\n", bearer());
    ask(stream, none.as_bytes()).await.problem(400, "malformed");
}

#[tokio::test]
async fn a_browser_gets_a_form_then_a_session() {
    let open = open(Limits::default()).await;
    let html = [("Accept", "text/html,application/xhtml+xml")];
    let page = open.get("/", &html).await;
    assert_eq!((page.status, page.header("content-type")), (401, Some("text/html; charset=utf-8")));
    assert!(page.text().contains("<form method=\"post\" action=\"/login\">") && !page.text().contains("<script"));
    assert!(page.header("content-security-policy").unwrap().contains("default-src 'self'"));
    assert!(page.header("content-security-policy").unwrap().contains("frame-ancestors 'none'"));
    assert_eq!(open.get("/login", &html).await.status, 200);

    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    let wrong = open.ask("POST", "/login", &form, "token=wrong").await;
    assert_eq!((wrong.status, wrong.header("set-cookie")), (401, None));
    assert!(wrong.text().contains("This is not the token"));
    open.ask("POST", "/login", &form, "user=x").await.problem(400, "malformed");
    open.ask("POST", "/login", &form, &format!("token={}", "x".repeat(5_000))).await.problem(413, "too-large");
    open.ask("POST", "/login", &[("Content-Type", "application/json")], "{}").await.problem(415, "type");
    assert_eq!(open.ask("PUT", "/login", &form, "").await.problem(405, "method"), "`/login` is posted to");
    let foreign = [form[0], ("Origin", "http://evil.example")];
    open.ask("POST", "/login", &foreign, &format!("token={TOKEN}")).await.problem(403, "forbidden");

    let session = open.session().await;
    assert_eq!(open.get("/v1/status", &[("Cookie", &session)]).await.status, 200);
    assert_eq!(open.get("/v1/status", &[("Cookie", &format!("a=b; {session}; c=d"))]).await.status, 200);
    let (name, value) = session.split_once('=').unwrap();
    for forged in [format!("{name}=x{value}"), format!("other={value}"), format!("{name}=9{value}"), format!("{name}=")]
    {
        assert_eq!(open.get("/v1/status", &[("Cookie", &forged)]).await.status, 401, "{forged}");
    }
    // A token that is wrong is not made up for by a session.
    let both = [("Cookie", session.as_str()), ("Authorization", "Bearer wrong")];
    assert_eq!(open.get("/v1/status", &both).await.status, 401);
    let ended = open.ask("POST", "/logout", &[("Cookie", &session)], "").await;
    assert!(ended.header("set-cookie").unwrap().starts_with(&format!("{name}=; Path=/; Max-Age=0")));
}

#[tokio::test]
async fn a_session_takes_commands_from_our_own_pages_only() {
    let open = open(Limits::default()).await;
    let session = open.session().await;
    let ours = format!("http://localhost:{}", open.address.port());
    let host = ours.strip_prefix("http://").unwrap();
    let command = |id: &str| format!(r#"{{"id":"{id}","command":{{"do":"add-node","group":"web"}}}}"#);
    let json = ("Content-Type", "application/json");
    let cookie = ("Cookie", session.as_str());
    let foreign: [&[(&str, &str)]; 6] = [
        &[],
        &[("Sec-Fetch-Site", "cross-site")],
        &[("Sec-Fetch-Site", "same-site")],
        &[("Sec-Fetch-Site", "none")],
        &[("Origin", "http://evil.example")],
        &[("Sec-Fetch-Site", "cross-site"), ("Origin", &ours)],
    ];
    for extra in foreign {
        let headers = [&[json, cookie, ("Host", host)], extra].concat();
        let refused = open.ask("POST", "/v1/commands", &headers, &command("foreign")).await;
        refused.problem(403, "forbidden");
    }
    let text = [("Content-Type", "text/plain"), cookie, ("Sec-Fetch-Site", "same-origin")];
    open.ask("POST", "/v1/commands", &text, &command("text")).await.problem(415, "type");
    assert_eq!(api::Control::status(&*open.fake).generation, 1, "nothing was done");
    for (id, extra) in [("one", ("Sec-Fetch-Site", "same-origin")), ("two", ("Origin", ours.as_str()))] {
        let done = open.ask("POST", "/v1/commands", &[json, cookie, extra, ("Host", host)], &command(id)).await;
        assert_eq!(done.status, 200, "{}", done.text());
    }
    // Who shows the token is no browser that was led astray.
    let authorization = bearer();
    let done = open.ask("POST", "/v1/commands", &[json, ("Authorization", &authorization)], &command("three")).await;
    assert_eq!(done.status, 200);
}

#[tokio::test]
async fn a_listener_is_never_open_to_everybody() {
    let start = async |listen: api::Listen| {
        let config = Config { listen: Some(listen), ..Config::default() };
        Server::start(Fake::new(Options::default()), config).await.err().unwrap()
    };
    let refused = start(api::Listen { tokens: None, ..listen() }).await;
    assert!(matches!(refused, ServeError::Open(_)), "{refused}");
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80"] {
        let refused = start(api::Listen { address: address.parse().unwrap(), ..listen() }).await;
        assert!(matches!(refused, ServeError::InTheClear(_)), "{refused}");
        assert!(refused.to_string().contains("TLS"), "{refused}");
    }
    let first = open(Limits::default()).await;
    let taken = start(api::Listen { address: first.address, ..listen() }).await;
    assert!(taken.to_string().contains(&first.address.to_string()), "{taken}");
}
