use super::*;

#[test]
fn lists_hold_each_rule_once() {
    let read = |rules: &[&str]| rules.iter().map(|rule| rule.parse().unwrap()).collect();
    let list = |allow: &[&str], ask: &[&str], deny: &[&str]| Rules {
        allow: read(allow),
        ask: read(ask),
        deny: read(deny),
        ..Rules::default()
    };
    let mut rules = list(&["Bash"], &["Read"], &[]);
    rules.add(list(&["Bash", "WebSearch"], &["Read"], &["Edit"]));
    assert_eq!(rules, list(&["Bash", "WebSearch"], &["Read"], &["Edit"]));
}
