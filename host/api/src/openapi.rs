//! The OpenAPI 3.1 document, made from the table of endpoints and the types of the wire.

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::problem::PROBLEM_JSON;
use crate::routes::{Answer, Asked, ENDPOINTS, Endpoint};
use crate::wire::{Change, End, Problem, Relist, Status};

/// What any request may be refused for.
const COMMON: &[u16] = &[400, 401, 403, 405, 414, 421, 429, 431, 500, 503];

/// The document that describes the interface.
pub fn document() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    let mut generator = settings.into_generator();
    let mut paths = Map::new();
    for endpoint in ENDPOINTS {
        let operation = operation(endpoint, &mut generator);
        let path = paths.entry(endpoint.path).or_insert_with(|| json!({}));
        if let Some(path) = path.as_object_mut() {
            path.insert(endpoint.method.to_ascii_lowercase(), operation);
        }
    }
    generator.subschema_for::<Problem>();
    let schemas = generator.take_definitions(true);
    json!({
        "openapi": "3.1.1",
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "info": {
            "title": "Homeostat",
            "version": "1",
            "description": "The daemon's interface. Instants are milliseconds since 1970. Fields are only added within a version.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "security": [{ "token": [] }, { "certificate": [] }, { "session": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": {
                "Problem": {
                    "description": "Refused (RFC 9457).",
                    "content": { PROBLEM_JSON: { "schema": { "$ref": "#/components/schemas/Problem" } } },
                },
            },
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer", "description": "Over TCP. Over the Unix socket the kernel says who asks." },
                "certificate": { "type": "mutualTLS", "description": "Over TCP, where a client authority was given." },
                "session": { "type": "apiKey", "in": "cookie", "name": "homeostat", "description": "What a browser gets for the token at /login. The cookie's name ends with the port." },
            },
        },
    })
}

fn operation(endpoint: &Endpoint, generator: &mut SchemaGenerator) -> Value {
    let mut operation = json!({
        "operationId": endpoint.id,
        "summary": endpoint.summary,
        "responses": responses(endpoint, generator),
    });
    let parameters = parameters(endpoint, generator);
    if !parameters.is_empty() {
        operation["parameters"] = Value::Array(parameters);
    }
    let content = match endpoint.body {
        Asked::Nothing => return operation,
        Asked::Json(schema) => json!({ "application/json": { "schema": schema(generator) } }),
        Asked::Bytes(media_type) => json!({ media_type: {} }),
    };
    operation["requestBody"] = json!({ "required": true, "content": content });
    operation
}

fn parameters(endpoint: &Endpoint, generator: &mut SchemaGenerator) -> Vec<Value> {
    let mut all = Vec::new();
    for part in endpoint.path.split('/') {
        if let Some(name) = part.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            let schema = json!({ "type": "string", "maxLength": 128 });
            all.push(json!({ "name": name, "in": "path", "required": true, "schema": schema }));
        }
    }
    let Some(query) = endpoint.query else { return all };
    let described: Schema = query(generator);
    let properties = described.get("properties").and_then(Value::as_object);
    for (name, schema) in properties.into_iter().flatten() {
        let mut schema = schema.clone();
        let description = schema.as_object_mut().and_then(|schema| schema.remove("description"));
        let mut parameter = json!({ "name": name, "in": "query", "required": false, "schema": schema });
        if let Some(description) = description {
            parameter["description"] = description;
        }
        all.push(parameter);
    }
    all
}

fn responses(endpoint: &Endpoint, generator: &mut SchemaGenerator) -> Value {
    let content = |media_type: &str, schema: Value| json!({ "description": "Done.", "content": { media_type: { "schema": schema } } });
    let good = match endpoint.answer {
        Answer::Json(schema) => content("application/json", schema(generator).to_value()),
        Answer::Object => content("application/json", json!({ "type": "object" })),
        Answer::Text(media_type) => content(media_type, json!({ "type": "string" })),
        Answer::Events => {
            let mut events = content("text/event-stream", json!({ "type": "string" }));
            events["description"] =
                "Events, for ever. `list`: the whole fleet. `change`: one change. `relist`: changes were missed, \
                a `list` follows. `end`: the last one. The id of `list` and `change` is the revision to go on from."
                    .into();
            events["x-events"] = json!({
                "list": generator.subschema_for::<Status>(),
                "change": generator.subschema_for::<Change>(),
                "relist": generator.subschema_for::<Relist>(),
                "end": generator.subschema_for::<End>(),
            });
            events
        }
    };
    let mut all = Map::from_iter([("200".to_owned(), good)]);
    for status in COMMON.iter().chain(endpoint.refusals) {
        all.insert(status.to_string(), json!({ "$ref": "#/components/responses/Problem" }));
    }
    Value::Object(all)
}
