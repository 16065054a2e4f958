//! What a template may not be.

use engine::shape::{Probe, Setting, Template};
use homeostat::backends::Backend;

use crate::fixture::{Place, script, server};

#[tokio::test]
async fn what_can_never_run_is_refused_with_its_field() {
    let place = Place::new();
    let backend = place.open();
    backend.check(&server()).unwrap();
    let mut cases: Vec<(&str, &str, Template)> = Vec::new();
    let mut case = |field, reason, change: &dyn Fn(&mut Template)| {
        let mut template = server();
        change(&mut template);
        cases.push((field, reason, template));
    };
    let text = |text: &str| Setting::Text(text.to_owned());
    case("image", "no images", &|template| template.image = Some("debian".into()));
    case("settings.graze", "no such setting", &|template| drop(template.settings.insert("graze".into(), text("1s"))));
    case("settings.grace", "in quotes", &|template| {
        drop(template.settings.insert("grace".into(), Setting::Integer(5)))
    });
    case("settings.grace", "10 minutes", &|template| drop(template.settings.insert("grace".into(), text("1h"))));
    case("settings.grace", "", &|template| {
        drop(template.settings.insert("grace".into(), text("9999999999999999999999s")))
    });
    case("boot.command", "at least a program", &|template| template.boot.command.clear());
    case("boot.command", "at least a program", &|template| template.boot.command[0].clear());
    case("boot.command[1]", "no placeholder {enpoint}", &|template| template.boot.command[1] = "{enpoint}".into());
    case("boot.command[0]", "NUL", &|template| template.boot.command[0] = "a\0b".into());
    case("boot.env.HOMEOSTAT_RUN", "set by the host", &|template| {
        drop(template.boot.env.insert("HOMEOSTAT_RUN".into(), "x".into()));
    });
    case("boot.env", "not the name", &|template| drop(template.boot.env.insert("A=B".into(), "x".into())));
    case("boot.env.A", "no placeholder {b}", &|template| drop(template.boot.env.insert("A".into(), "{b}".into())));
    for path in ["", "/etc/passwd", "../x", "a/../../x", "./x", "a/"] {
        let field = Box::leak(format!("boot.files.{path}").into_boxed_str());
        case(field, "relative path", &|template| drop(template.boot.files.insert(path.into(), "x".into())));
    }
    case("boot.files.a/b", "no placeholder {nod}", &|template| {
        drop(template.boot.files.insert("a/b".into(), "{nod}".into()))
    });
    for url in ["https://{endpoint}/", "{endpoint}/healthz", "http://", "http://a b/"] {
        case("join.probe.http", "http://", &|template| template.join.probe = Probe::Http(url.into()));
    }
    for address in ["{host}", ":80", "{host}:0", "{host}:http", "{host}:65536"] {
        case("join.probe.tcp", "host:port", &|template| template.join.probe = Probe::Tcp(address.into()));
    }
    case("join.probe.exec", "at least a program", &|template| template.join.probe = Probe::Exec(vec![]));
    case("join.probe.exec[0]", "no placeholder {x}", &|template| template.join.probe = Probe::Exec(vec!["{x}".into()]));
    case("join.probe.stdout", "regex", &|template| template.join.probe = Probe::Stdout("(".into()));
    for (field, reason, template) in &cases {
        let error = backend.check(template).expect_err(field);
        assert_eq!(&error.field, field, "{error}");
        assert!(error.reason.contains(reason), "{error}");
    }
    let mut braces = script(r#"f() { echo "${HOME}" '{{print}}'; }; f"#);
    braces.boot.files.insert("conf/app.json".into(), "{ \"listen\": \"{endpoint}\", \"a\": {\"b\": {}} }".into());
    braces.join.probe = Probe::Stdout(r"^\d{1,3} {endpoint}".into());
    backend.check(&braces).unwrap();
}
