//! Which changes are news to a person: not those in which only what a node waits for, or until when, is different.

use std::collections::BTreeMap;

use api::wire::{Change, Node, Status, What};

/// What was told last of each node.
#[derive(Clone, Debug, Default)]
pub struct News {
    nodes: BTreeMap<String, Node>,
}

impl News {
    /// The whole fleet is known anew.
    pub fn list(&mut self, status: &Status) {
        self.nodes = status.nodes.iter().map(|node| (node.node.clone(), without_wait(node))).collect();
    }

    /// Whether a change says more than that a node waits for something else.
    pub fn is_news(&mut self, change: &Change) -> bool {
        match &change.what {
            What::Node(node) => {
                let bare = without_wait(node);
                self.nodes.insert(node.node.clone(), bare.clone()).is_none_or(|known| known != bare)
            }
            What::Gone { node } => {
                self.nodes.remove(node);
                true
            }
            _ => true,
        }
    }
}

/// A wait ends or is replaced with each pass; the rule says why it waits.
fn without_wait(node: &Node) -> Node {
    Node { waits_for: String::new(), until_ms: None, rule: None, ..node.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_wait_is_no_news_and_all_else_is() {
        let node = Node { node: "web-0".into(), stage: "new".into(), waits_for: "a lease".into(), ..Node::default() };
        let mut news = News::default();
        news.list(&Status { nodes: vec![node.clone()], ..Status::default() });
        let mut tell = |what| news.is_news(&Change { schema: String::new(), revision: String::new(), at_ms: 1, what });
        let of = |node: &Node| What::Node(Box::new(node.clone()));
        assert!(!tell(of(&node)));
        let wait = Node { waits_for: "the retry".into(), until_ms: Some(7), rule: Some("R10".into()), ..node.clone() };
        assert!(!tell(of(&wait)));
        assert!(tell(of(&Node { stage: "joined".into(), ..wait.clone() })));
        assert!(!tell(of(&Node { stage: "joined".into(), ..node.clone() })));
        for other in [
            Node { attempt: Some(4), ..node.clone() },
            Node { error: Some("it failed".into()), ..node.clone() },
            Node { failures: 2, ..node.clone() },
            Node { held: Some("paused".into()), ..node.clone() },
            Node { ready: true, ..node.clone() },
            Node { deleting: true, ..node.clone() },
        ] {
            assert!(tell(of(&other)) && !tell(of(&other)), "{other:?}");
        }
        assert!(tell(What::Gone { node: "web-0".into() }));
        assert!(tell(of(&node)), "a slot that is desired again");
        assert!(tell(What::Notice { level: "info".into(), text: "x".into() }));
    }
}
